// A live line is redrawn at most ten times a second, so that the terminal does
// not slow down fast steps. Tested in tests/executor/train/progress_test.cc.
#include "executor/train/progress.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

namespace loadline::executor {
namespace {

constexpr int64_t kRedrawNs = 100'000'000;
constexpr int kBarWidth = 24;

std::string TimeLeft(double seconds) {
  const auto s = static_cast<int64_t>(std::llround(std::min(seconds, 1e9)));
  if (s < 120) return absl::StrCat(s, " s");
  if (s < 7200) return absl::StrCat(s / 60, " min");
  return absl::StrCat(s / 3600, " h ", s % 3600 / 60, " min");
}

std::string Bar(const TrainProgress& p) {
  const int64_t steps = std::max<int64_t>(p.steps, 1);
  const auto full =
      static_cast<size_t>(std::min(p.step, steps) * kBarWidth / steps);
  return absl::StrCat("[", std::string(full, '#'),
                      std::string(kBarWidth - full, '.'), "] ");
}

}  // namespace

std::string ProgressText(const TrainProgress& p) {
  return absl::StrFormat("%d/%d  loss %.4f  %.0f examples/s  %s left", p.step,
                         p.steps, p.loss, p.examples_per_s, TimeLeft(p.left_s));
}

ProgressLine::ProgressLine(std::FILE* out, bool terminal, int64_t interval)
    : out_(out),
      terminal_(terminal),
      interval_(std::max<int64_t>(interval, 1)) {}

ProgressLine::~ProgressLine() {
  if (live_) std::fputc('\n', out_);
}

void ProgressLine::Show(const TrainProgress& p) {
  const bool ends = p.step >= p.steps;
  if (!terminal_) {
    if (first_ || ends || p.step % interval_ == 0) {
      std::fprintf(out_, "step %s\n", ProgressText(p).c_str());
      std::fflush(out_);
    }
    first_ = false;
    return;
  }
  const int64_t now_ns = absl::GetCurrentTimeNanos();
  if (!ends && live_ && now_ns - shown_ns_ < kRedrawNs) return;
  shown_ns_ = now_ns;
  // Carriage return, text, clear to the end of the line.
  std::fprintf(out_, "\r%s%s\x1b[K", Bar(p).c_str(), ProgressText(p).c_str());
  if (ends) std::fputc('\n', out_);
  std::fflush(out_);
  live_ = !ends;
}

}  // namespace loadline::executor
