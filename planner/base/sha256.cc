// OpenSSL's functions for SHA-256 alone, deprecated since 3.0: its general
// interface would bring 1.6 MB of other algorithms into the plugin's wheel.
// Tested in tests/planner/base/sha256_test.cc against the examples of FIPS
// 180-4.
#include "planner/base/sha256.h"

#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include <cstdint>

#include "absl/strings/escaping.h"
#include "planner/base/check.h"

namespace loadline::planner {

struct Sha256::State {
  SHA256_CTX context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  LOADLINE_CHECK(SHA256_Init(&state_->context) == 1);
}

Sha256::~Sha256() = default;

void Sha256::Add(const void* data, size_t bytes) {
  LOADLINE_CHECK(SHA256_Update(&state_->context, data, bytes) == 1);
}

void Sha256::AddText(absl::string_view text) {
  const uint64_t size = text.size();
  Add(&size, sizeof(size));
  Add(text.data(), text.size());
}

std::string Sha256::HexDigest() {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  LOADLINE_CHECK(SHA256_Final(digest, &state_->context) == 1);
  return absl::BytesToHexString(absl::string_view(
      reinterpret_cast<const char*>(digest), SHA256_DIGEST_LENGTH));
}

std::string Sha256Hex(absl::string_view bytes) {
  Sha256 hash;
  hash.Add(bytes.data(), bytes.size());
  return hash.HexDigest();
}

}  // namespace loadline::planner
