// Words that people use for parameters and for buffers. Tested in
// tests/models/onnx_classify_test.cc.
#include "models/onnx/initializer_names.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace loadline::models::onnx_internal {

bool IsInventedName(absl::string_view name) {
  // spox: Loop_0_body__Constant_2_output.
  absl::ConsumeSuffix(&name, "_output");
  const size_t body = name.rfind("__");
  if (body != absl::string_view::npos) name.remove_prefix(body + 2);
  const size_t underscore = name.rfind('_');
  if (underscore == absl::string_view::npos || underscore + 1 == name.size() ||
      !std::all_of(name.begin() + static_cast<long>(underscore) + 1, name.end(),
                   [](char c) { return std::isdigit(c) != 0; })) {
    return false;
  }
  const absl::string_view stem = name.substr(0, underscore);
  return stem == "val" || stem == "_val" || stem == "Constant" ||
         absl::StartsWith(stem, "onnx::");
}

bool IsVariable(absl::string_view name) {
  return absl::StrContains(name, "ReadVariableOp");
}

NameSays WhatNameSays(absl::string_view name) {
  static const auto* const kParameter = new std::set<std::string>{
      "w",        "b",       "weight", "weights", "bias",       "biases",
      "gamma",    "beta",    "alpha",  "kernel",  "embed",      "embedding",
      "token",    "tokens",  "embeds", "query",   "embeddings", "queries",
      "gain",     "scale",   "slope",  "prompt",  "prompts",    "temperature",
      "latent",   "latents", "cls",    "pos",     "registers",  "log",
      "lambda",   "lambdas", "d",      "ls",      "seed",       "seeds",
      "inducing", "slots",   "tau",    "strength"};
  static const auto* const kBuffer = new std::set<std::string>{
      "mean",   "std",   "var",     "eps",      "epsilon", "mask",   "buffer",
      "freq",   "freqs", "inv",     "running",  "cumprod", "anchor", "anchors",
      "stride", "grid",  "strides", "constant", "variance"};
  if (IsInventedName(name)) return NameSays::kNothing;
  const size_t dot = name.rfind('.');
  if (dot != absl::string_view::npos) name.remove_prefix(dot + 1);
  // Weights of a loss.
  for (absl::string_view weight :
       {"pos_weight", "class_weight", "class_weights", "loss_weight",
        "loss_weights"}) {
    if (name == weight) return NameSays::kBuffer;
  }
  // What BART and the models after it in transformers add to their logits.
  if (name == "final_logits_bias") return NameSays::kBuffer;
  // A learned logarithm, such as log_std; buffers of diffusion have more words.
  for (absl::string_view logarithm : {"log_std", "logstd", "log_var", "logvar",
                                      "log_variance", "log_sigma"}) {
    if (name == logarithm) return NameSays::kParameter;
  }
  // RWKV's decays and shares of the token before.
  for (absl::string_view of_time : {"time_decay", "time_first", "time_mix"}) {
    if (absl::StartsWith(name, of_time)) return NameSays::kParameter;
  }
  // A mask token is a parameter: MAE and wav2vec 2.0 learn the vector that
  // replaces masked inputs.
  for (absl::string_view masked :
       {"mask_token", "mask_tokens", "mask_emb", "mask_embed", "mask_embedding",
        "mask_embeddings"}) {
    if (name == masked) return NameSays::kParameter;
  }
  // Statistics of a batch normalization are variables too.
  if (IsVariable(name)) {
    const std::string lower = absl::AsciiStrToLower(name);
    return absl::StrContains(lower, "batchnorm") ||
                   absl::StrContains(lower, "batch_norm") ||
                   absl::StrContains(lower, "moving")
               ? NameSays::kNothing
               : NameSays::kParameter;
  }
  NameSays says = NameSays::kNothing;
  for (absl::string_view word :
       absl::StrSplit(name, absl::ByAnyChar("_:/0123456789"))) {
    const std::string lower = absl::AsciiStrToLower(word);
    if (kBuffer->count(lower) > 0) return NameSays::kBuffer;
    if (kParameter->count(lower) > 0) says = NameSays::kParameter;
  }
  return says;
}

}  // namespace loadline::models::onnx_internal
