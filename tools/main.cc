// The program `loadline`. All of it is tools/command.h, so that tests can call
// it.
#include <signal.h>

#include <string>
#include <vector>

#include "tools/command.h"

int main(int argc, char** argv) {
  // A limit on file sizes is then an error of a write, like a full disk.
  signal(SIGXFSZ, SIG_IGN);
  return loadline::tools::RunCommand(
      std::vector<std::string>(argv + 1, argv + argc));
}
