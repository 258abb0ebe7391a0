// Ctrl-C and a lost terminal as a flag that long computations poll.
#ifndef LOADLINE_TOOLS_CLI_INTERRUPT_H_
#define LOADLINE_TOOLS_CLI_INTERRUPT_H_

#include <atomic>

namespace loadline::tools {

// After the first call, SIGINT, SIGTERM and SIGHUP set the returned flag; a
// second signal ends the process at once with exit code 130. SIGHUP stays
// ignored where it was (nohup). A reader that goes away is a write error
// instead of the end of the process.
const std::atomic<bool>* CatchInterrupts();

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_INTERRUPT_H_
