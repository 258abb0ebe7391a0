// JSON as it leaves the program.
#ifndef LOADLINE_TOOLS_CLI_JSON_TEXT_H_
#define LOADLINE_TOOLS_CLI_JSON_TEXT_H_

#include <string>

#include "nlohmann/json_fwd.hpp"

namespace loadline::tools {

// On one line. Names come from files and need not be UTF-8; JSON must be: what
// is not becomes U+FFFD.
std::string JsonText(const nlohmann::ordered_json& document);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_JSON_TEXT_H_
