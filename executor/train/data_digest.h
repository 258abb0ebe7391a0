// Detects whether a resumed run has the same data as before.
#ifndef LOADLINE_EXECUTOR_TRAIN_DATA_DIGEST_H_
#define LOADLINE_EXECUTOR_TRAIN_DATA_DIGEST_H_

#include <string>

#include "absl/strings/string_view.h"
#include "executor/train/data.h"

namespace loadline::executor {

// Of the rows as the model gets them: a line "N examples", and for each column
// a line of 16 digits of the SHA-256 of its rows, and its name. A column above
// 16 MiB counts with some of its rows, spread evenly. Rows that cannot be read
// count for nothing: the run ends where it needs them.
std::string DigestOfData(const DataSet& data);

// What differs between the data of two digests, for a user: "1437 examples, now
// 200". Empty: nothing, or one of them is unknown.
std::string OtherData(absl::string_view then, absl::string_view now);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_TRAIN_DATA_DIGEST_H_
