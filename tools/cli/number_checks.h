// What a flag's number must be. CLI11's own checks print the largest double.
#ifndef LOADLINE_TOOLS_CLI_NUMBER_CHECKS_H_
#define LOADLINE_TOOLS_CLI_NUMBER_CHECKS_H_

#include <string>

namespace loadline::tools {

// For CLI::Option::check. "" if `text` is a finite number that is above 0, at
// least 0, or from 0 to 1; else the error, such as "must be a number above 0,
// not 'abc'".
std::string CheckPositive(const std::string& text);
std::string CheckNonNegative(const std::string& text);
// What an unsigned number of 64 bits holds; the parser would take the nearest.
std::string CheckSeed(const std::string& text);
std::string CheckShare(const std::string& text);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_CLI_NUMBER_CHECKS_H_
