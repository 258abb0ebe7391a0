// SHA-256 (FIPS 180-4): names a problem, a model or its weights by content.
#ifndef LOADLINE_PLANNER_BASE_SHA256_H_
#define LOADLINE_PLANNER_BASE_SHA256_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace loadline::planner {

// A digest of bytes that arrive in parts.
//
//   Sha256 hash;
//   hash.Add(data, bytes);
//   std::string hex = hash.HexDigest();   // at most once
class Sha256 {
 public:
  Sha256();
  ~Sha256();

  void Add(const void* data, size_t bytes);
  // Adds the length and the text: different lists of texts have different
  // bytes.
  void AddText(absl::string_view text);
  // 64 lower-case hex digits. Nothing may be added after it.
  std::string HexDigest();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The digest of `bytes` as 64 lower-case hex digits.
std::string Sha256Hex(absl::string_view bytes);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BASE_SHA256_H_
