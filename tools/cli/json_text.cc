// Tested by tests/tools/cli/json_text_test.cc.
#include "tools/cli/json_text.h"

#include "nlohmann/json.hpp"

namespace loadline::tools {

std::string JsonText(const nlohmann::ordered_json& document) {
  return document.dump(-1, ' ', /*ensure_ascii=*/false,
                       nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace loadline::tools
