#include "tests/executor/support/npy_bytes.h"

namespace loadline::executor {

std::string NpyFile(const std::string& descr, const std::string& shape,
                    const std::string& data) {
  std::string dictionary = "{'descr': '" + descr +
                           "', 'fortran_order': False, 'shape': " + shape +
                           ", }\n";
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(dictionary.size());
  bytes += '\0';
  return bytes + dictionary + data;
}

}  // namespace loadline::executor
