// The program `loadline`. Everything is in tools/cli/command.h, so that tests
// can call it.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tools/cli/command.h"

namespace {

// OpenMP's threads spin between kernels by default. If another process needs a
// core, a step then takes ten times as long (measured: 2.6 s instead of 0.19 s
// for ResNet-18 with one busy process). The OpenMP runtime reads its
// environment when it is loaded, before main, and has no call for this. So this
// sets the variable and restarts the program once. A value that the user has
// set is kept.
void PreferSleepingThreads(char** argv) {
  if (getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "PASSIVE", 1);
  execv("/proc/self/exe", argv);  // returns only where there is no /proc
}

}  // namespace

int main(int argc, char** argv) {
  PreferSleepingThreads(argv);
  // A limit on file sizes then gives a write error, like a full disk.
  signal(SIGXFSZ, SIG_IGN);
  return loadline::tools::RunCommand(
      std::vector<std::string>(argv + 1, argv + argc));
}
