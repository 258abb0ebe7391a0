// OpenSSL's one-call digest, printed in hex. Tested in
// tests/planner/problem/json_test.cc against FIPS 180-4's examples.
#include "planner/base/sha256.h"

#include <openssl/evp.h>

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "planner/base/check.h"

namespace loadline::planner {

std::string Sha256Hex(absl::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  LOADLINE_CHECK(EVP_Digest(bytes.data(), bytes.size(), digest, &size,
                            EVP_sha256(), nullptr) == 1);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest), size));
}

}  // namespace loadline::planner
