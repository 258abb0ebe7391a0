// The program `loadline`. All of it is tools/cli/command.h, so that tests can
// call it.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tools/cli/command.h"

namespace {

// OpenMP's threads spin between kernels by default; where anything else wants
// a core, a step then takes ten times as long (measured: 2.6 s against 0.19 s
// for ResNet-18 beside one busy process). The runtime reads its environment
// when it is loaded, before main, and has no call for it: so set the variable
// and start again, once. Whoever set it keeps what they set.
void PreferSleepingThreads(char** argv) {
  if (getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "PASSIVE", 1);
  execv("/proc/self/exe", argv);  // returns only where there is no /proc
}

}  // namespace

int main(int argc, char** argv) {
  PreferSleepingThreads(argv);
  // A limit on file sizes is then an error of a write, like a full disk.
  signal(SIGXFSZ, SIG_IGN);
  return loadline::tools::RunCommand(
      std::vector<std::string>(argv + 1, argv + argc));
}
