// The loop of every campaign.
#ifndef LOADLINE_TESTS_CAMPAIGN_RUN_CAMPAIGN_H_
#define LOADLINE_TESTS_CAMPAIGN_RUN_CAMPAIGN_H_

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "tests/campaign/arguments.h"

namespace loadline::campaign {

// Runs cases until their count is reached or a signal asks to stop, then prints
// one line with the counts. `run_case` has the seed of its case, prints what it
// finds and returns how many findings that are. Returns all findings.
inline int64_t RunCases(const Arguments& arguments, const char* what,
                        absl::FunctionRef<int64_t(uint64_t seed)> run_case) {
  int64_t findings = 0;
  int64_t done = 0;
  for (; done < arguments.count && stop_asked == 0; ++done) {
    current_seed = arguments.seed + done;
    findings += run_case(static_cast<uint64_t>(arguments.seed + done));
  }
  std::printf("%lld %s from seed %lld, %lld findings\n",
              static_cast<long long>(done), what,
              static_cast<long long>(arguments.seed),
              static_cast<long long>(findings));
  return findings;
}

// Returns 1 for an error, with the command that repeats it, else 0.
inline int64_t PrintIfFound(uint64_t seed, const absl::Status& status) {
  if (status.ok()) return 0;
  std::printf("FOUND --seed %llu --count 1: %s\n",
              static_cast<unsigned long long>(seed), status.ToString().c_str());
  std::fflush(stdout);
  return 1;
}

inline void PrintCounts(const std::map<std::string, int64_t>& counts) {
  for (const auto& [what, times] : counts) {
    std::printf("  %s: %lld\n", what.c_str(), static_cast<long long>(times));
  }
}

}  // namespace loadline::campaign

#endif  // LOADLINE_TESTS_CAMPAIGN_RUN_CAMPAIGN_H_
