// Names of a graph's nodes or values, so that a name that is free is found
// without a scan.
//
// The index belongs to one vector of named things, which others may change: it
// reads the things that were added since the last call, and is made again where
// things were removed or moved. A thing that gets another name in place needs
// `Rename`, or a later thing may get the same name (VerifyGraph reports that).
#ifndef LOADLINE_MODELS_NAME_INDEX_H_
#define LOADLINE_MODELS_NAME_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace loadline::models {

class NameIndex {
 public:
  // The name of thing `i`.
  using NameOf = absl::FunctionRef<const std::string&(size_t i)>;

  NameIndex();
  ~NameIndex();
  // A copy starts empty: it belongs to another vector.
  NameIndex(const NameIndex&) : NameIndex() {}
  NameIndex& operator=(const NameIndex&);

  // `base`, or the first of base.1, base.2, ... that none of `count` things
  // has.
  std::string Unique(size_t count, NameOf name_of, absl::string_view base);
  // Thing `i` has the name `to` now, in place of `from`.
  void Rename(size_t i, absl::string_view from, absl::string_view to);

 private:
  struct Names;

  bool IsTaken(size_t count, NameOf name_of, const std::string& name);
  void Read(size_t count, NameOf name_of);

  std::unique_ptr<Names> names_;
};

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_NAME_INDEX_H_
