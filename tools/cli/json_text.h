// JSON text for output.
#ifndef LOADLINE_TOOLS_CLI_JSON_TEXT_H_
#define LOADLINE_TOOLS_CLI_JSON_TEXT_H_

#include <string>

#include "nlohmann/json_fwd.hpp"

namespace loadline::tools {

// The document on one line. Names come from files and may not be UTF-8, which
// JSON requires: invalid bytes become U+FFFD.
std::string JsonText(const nlohmann::ordered_json& document);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_JSON_TEXT_H_
