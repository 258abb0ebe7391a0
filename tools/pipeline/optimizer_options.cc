#include "tools/pipeline/optimizer_options.h"

#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "planner/base/status_macros.h"
#include "tools/pipeline/name_value.h"

namespace loadline::tools {
namespace {

// InvalidArgument if the flags have a setting that the optimizer does not read.
// The run would silently ignore it.
absl::Status CheckAllRead(const OptimizerFlags& flags,
                          passes::OptimizerKind kind) {
  using Kind = passes::OptimizerKind;
  const bool adam = kind == Kind::kAdam || kind == Kind::kAdamW;
  const bool betas = adam || kind == Kind::kLion;
  struct Setting {
    absl::string_view flag;
    bool given;
    bool read;
  };
  const Setting settings[] = {
      {"--momentum", flags.momentum.has_value(), kind == Kind::kSgd},
      {"--nesterov", flags.nesterov, kind == Kind::kSgd},
      {"--beta1", flags.beta1.has_value(), betas},
      {"--beta2", flags.beta2.has_value(), betas},
      {"--epsilon", flags.epsilon.has_value(), adam || kind == Kind::kAdagrad},
  };
  for (const Setting& setting : settings) {
    if (setting.given && !setting.read) {
      return absl::InvalidArgumentError(
          absl::StrCat(setting.flag, ": --optimizer ", flags.optimizer,
                       " has no such setting"));
    }
  }
  if (kind == passes::OptimizerKind::kSgd && flags.EffectiveMomentum() == 0 &&
      flags.state_bits != 32) {
    return absl::InvalidArgumentError(
        absl::StrCat(flags.state_bits,
                     "-bit optimizer states: SGD without a momentum has no "
                     "state"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<passes::OptimizerOptions> OptimizerFor(
    const OptimizerFlags& flags) {
  passes::OptimizerOptions options;
  LOADLINE_ASSIGN_OR_RETURN(options.kind,
                            passes::OptimizerKindFromName(flags.optimizer));
  options.weight_decay = flags.EffectiveWeightDecay();
  LOADLINE_RETURN_IF_ERROR(CheckAllRead(flags, options.kind));
  options.momentum = flags.EffectiveMomentum();
  options.nesterov = flags.nesterov;
  options.beta1 = flags.EffectiveBeta1();
  options.beta2 = flags.EffectiveBeta2();
  options.epsilon = flags.EffectiveEpsilon();
  options.clip_norm = flags.clip_norm;
  options.average = flags.ema;
  options.state_bits = flags.state_bits;
  options.groups.no_decay = flags.no_decay;
  options.groups.decay_matrices_only = flags.decay_matrices_only;
  for (const std::string& text : flags.lr_scales) {
    LOADLINE_ASSIGN_OR_RETURN(const auto pair,
                              SplitNameValue("--lr-scale", text));
    double factor = 0;
    if (!absl::SimpleAtod(pair.second, &factor)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--lr-scale '", text, "': expected NAME=FACTOR"));
    }
    options.groups.rates.emplace_back(pair.first, factor);
  }
  return options;
}

}  // namespace loadline::tools
