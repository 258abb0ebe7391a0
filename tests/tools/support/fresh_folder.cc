// Used by every test of tools/ that writes files.
#include "tests/tools/support/fresh_folder.h"

#include "tests/planner/support/test_folder.h"

namespace loadline::tools {

std::string FreshFolder() { return EmptyTestFolder(); }

}  // namespace loadline::tools
