// OpenSSL's EVP interface. Tested in tests/planner/base/sha256_test.cc against
// the examples of FIPS 180-4.
#include "planner/base/sha256.h"

#include <openssl/evp.h>

#include <cstdint>

#include "absl/strings/escaping.h"
#include "planner/base/check.h"

namespace loadline::planner {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  LOADLINE_CHECK(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) ==
                 1);
}

Sha256::~Sha256() = default;

void Sha256::Add(const void* data, size_t bytes) {
  LOADLINE_CHECK(EVP_DigestUpdate(state_->context, data, bytes) == 1);
}

void Sha256::AddText(absl::string_view text) {
  const uint64_t size = text.size();
  Add(&size, sizeof(size));
  Add(text.data(), text.size());
}

std::string Sha256::HexDigest() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  LOADLINE_CHECK(EVP_DigestFinal_ex(state_->context, digest, &size) == 1);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest), size));
}

std::string Sha256Hex(absl::string_view bytes) {
  Sha256 hash;
  hash.Add(bytes.data(), bytes.size());
  return hash.HexDigest();
}

}  // namespace loadline::planner
