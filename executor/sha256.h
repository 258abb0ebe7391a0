// SHA-256, for the fingerprint of weights and models.
#ifndef LOADLINE_EXECUTOR_SHA256_H_
#define LOADLINE_EXECUTOR_SHA256_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace loadline::executor {

//   Sha256 hash;
//   hash.Add(data, bytes);
//   std::string hex = hash.HexDigest();   // once; lower case
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void Add(const void* data, size_t bytes);
  // With its length, so that a list of texts has one reading.
  void AddText(absl::string_view text);
  std::string HexDigest();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_SHA256_H_
