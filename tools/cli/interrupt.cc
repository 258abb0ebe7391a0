// A signal handler may do very little: it sets a flag, and the current step or
// search ends by itself. Tested by tests/end_to_end/training_test.cc.
#include "tools/cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include "tools/cli/exit_code.h"

namespace loadline::tools {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void OnSignal(int) {
  if (interrupted.exchange(true)) _exit(kInterrupted);
}

}  // namespace

const std::atomic<bool>* CatchInterrupts() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  // What the caller has made us ignore, as nohup does, stays ignored.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before = {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
  // With the terminal goes whatever reads the log; the run must outlive it
  // until it is saved.
  signal(SIGPIPE, SIG_IGN);
  return &interrupted;
}

}  // namespace loadline::tools
