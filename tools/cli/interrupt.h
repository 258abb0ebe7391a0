// Ctrl-C as a flag that long work polls.
#ifndef LOADLINE_TOOLS_CLI_INTERRUPT_H_
#define LOADLINE_TOOLS_CLI_INTERRUPT_H_

#include <atomic>

namespace loadline::tools {

// From the first call on, SIGINT and SIGTERM set the returned flag; a second
// one ends the process at once with exit code 130.
const std::atomic<bool>* CatchInterrupts();

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_INTERRUPT_H_
