// Which of a problem's codecs and variants a plan may use.
#ifndef LOADLINE_PLANNER_PROBLEM_PERMISSIONS_H_
#define LOADLINE_PLANNER_PROBLEM_PERMISSIONS_H_

namespace loadline::planner {

// The defaults permit only what leaves every bit of the results unchanged.
struct Permissions {
  bool codecs = true;    // lossless ones
  bool lossy = false;    // the others too
  bool variants = true;  // exact ones
  bool inexact = false;  // the others too

  static Permissions None() { return {.codecs = false, .variants = false}; }
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_PROBLEM_PERMISSIONS_H_
