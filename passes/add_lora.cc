// Tested in tests/passes/add_lora_test.cc.
#include "passes/add_lora.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/name_pattern.h"
#include "passes/node_replacer.h"
#include "passes/remove_dead_nodes.h"
#include "planner/base/random.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Attributes;
using models::Graph;
using models::Node;
using models::Tensor;
using models::TensorType;
using models::ValueId;
using models::ValueKind;

// A product whose right operand is a parameter, perhaps transposed.
struct Target {
  ValueId weight = models::kNoValue;
  bool transposed = false;  // the weight is [n,k]
  std::string refusal;      // why it can have no adapter; empty: it can
};

// FNV-1a, then splitmix64: numbers that depend on the name and the index alone.
class NameRandom {
 public:
  explicit NameRandom(absl::string_view name) {
    state_ = 0xCBF29CE484222325u;
    for (const char c : name) {
      state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
    }
  }

  // In [-1, 1).
  float Next() {
    const uint64_t bits = planner::SplitMix64(state_);
    state_ += planner::kSplitMix64Step;
    return static_cast<float>(static_cast<int64_t>(bits >> 40)) / 8388608.0f -
           1;
  }

 private:
  uint64_t state_;
};

Tensor InitialA(absl::string_view name, const TensorType& type, int64_t k) {
  NameRandom random(name);
  const float bound = 1 / std::sqrt(static_cast<float>(k));
  std::vector<float> numbers(static_cast<size_t>(type.elements()));
  for (float& number : numbers) number = bound * random.Next();
  return models::MakeTensor(type, numbers.data());
}

Tensor Zeros(const TensorType& type) {
  const std::vector<float> zeros(static_cast<size_t>(type.elements()));
  return models::MakeTensor(type, zeros.data());
}

class Lora {
 public:
  Lora(Graph& graph, const LoraOptions& options)
      : graph_(graph), options_(options), index_(models::IndexGraph(graph)) {}

  absl::Status Run() {
    FindTargets();
    LOADLINE_RETURN_IF_ERROR(CheckPatterns());
    FreezeOthers();
    NodeReplacer nodes(graph_);
    for (size_t n = 0; n < nodes.old_nodes().size(); ++n) {
      const Node& node = nodes.old_nodes()[n];
      const auto found = targets_.find(n);
      if (found == targets_.end() || !IsWanted(n, node)) {
        nodes.Keep(node);
        continue;
      }
      if (!found->second.refusal.empty()) {
        return absl::InvalidArgumentError(
            absl::StrCat("--lora: '", graph_.value(found->second.weight).name,
                         "' ", found->second.refusal));
      }
      LOADLINE_RETURN_IF_ERROR(Adapt(node, found->second, nodes));
    }
    return RemoveDeadNodes(graph_);
  }

 private:
  void FindTargets() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (node.op != "MatMul" && node.op != "Gemm") continue;
      ValueId weight = node.inputs[1];
      bool transposed =
          node.attributes.Int(node.op == "Gemm" ? "transB" : "trans_b", 0) != 0;
      const int32_t maker = index_.producer[Index(weight)];
      const bool through =
          maker >= 0 &&
          graph_.nodes[static_cast<size_t>(maker)].op == "Transpose" &&
          graph_.value(weight).type.rank() == 2 && Readers(weight) == 1;
      if (through) {
        weight = graph_.nodes[static_cast<size_t>(maker)].inputs[0];
        transposed = !transposed;
      }
      const models::Value& value = graph_.value(weight);
      if (value.kind != ValueKind::kParameter) {
        if (value.kind == ValueKind::kConstant && value.type.rank() == 2)
          frozen_.push_back(value.name);
        continue;
      }
      targets_[n] = {weight, transposed, Refusal(node, weight)};
    }
    for (const ValueId output : graph_.outputs) {
      const int32_t maker = index_.producer[Index(output)];
      if (maker >= 0) last_ = static_cast<size_t>(maker);
    }
  }

  size_t Readers(ValueId id) const {
    return index_.consumers[Index(id)].size();
  }

  std::string Refusal(const Node& node, ValueId weight) const {
    const TensorType& type = graph_.value(weight).type;
    if (Readers(weight) > 1) {
      return "is read by several nodes, so a merged weight would change all";
    }
    if (type.rank() != 2 || type.dtype != models::DType::kF32) {
      return absl::StrCat("is ", type.ToString(), ", not a matrix of f32");
    }
    if (std::min(type.dims[0], type.dims[1]) <= options_.rank) {
      return absl::StrCat("is ", type.ToString(), ", no wider than the rank ",
                          options_.rank);
    }
    if (models::MatchesAny(options_.train, graph_.value(weight).name)) {
      return "is to be trained itself (--train) and has an adapter";
    }
    const bool plain = graph_.value(node.inputs[0]).type.rank() >= 2 &&
                       node.attributes.Int("trans_a", 0) == 0 &&
                       node.attributes.Int("transA", 0) == 0 &&
                       node.attributes.Float("alpha", 1) == 1;
    return plain ? ""
                 : "belongs to a product with a scaled or transposed input";
  }

  bool Matches(size_t n, const Node& node,
               const std::vector<std::string>& patterns) const {
    return models::MatchesAny(patterns, node.name) ||
           models::MatchesAny(patterns,
                              graph_.value(targets_.at(n).weight).name);
  }

  bool IsWanted(size_t n, const Node& node) const {
    if (!options_.targets.empty()) return Matches(n, node, options_.targets);
    return targets_.at(n).refusal.empty() && n != last_;
  }

  absl::Status CheckPatterns() const {
    for (const std::string& pattern : options_.targets) {
      const bool found = std::any_of(
          targets_.begin(), targets_.end(), [&](const auto& target) {
            return Matches(target.first, graph_.nodes[target.first], {pattern});
          });
      if (!found) {
        return absl::InvalidArgumentError(
            absl::StrCat("--lora: no weight of a Gemm or MatMul matches '",
                         pattern, "'; there are ", Names()));
      }
    }
    const bool any =
        std::any_of(targets_.begin(), targets_.end(), [&](const auto& target) {
          return IsWanted(target.first, graph_.nodes[target.first]);
        });
    if (any) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "--lora: the model has no weight that could have an adapter: ",
        WhyNone()));
  }

  // Why no weight is wanted, where no targets are named.
  std::string WhyNone() const {
    for (const auto& [n, target] : targets_) {
      if (target.refusal.empty()) continue;
      const std::string more =
          targets_.size() > 1
              ? absl::StrCat(
                    ", and the others have reasons of their own; name "
                    "one with targets=NAME to see why")
              : "";
      return absl::StrCat("'", graph_.value(target.weight).name, "' ",
                          target.refusal, more);
    }
    if (!targets_.empty()) {
      return absl::StrCat("'",
                          graph_.value(targets_.begin()->second.weight).name,
                          "' makes the model's output, and has one only if "
                          "targets names it; convolutions have none");
    }
    if (!frozen_.empty()) {
      return absl::StrCat(
          "'", frozen_.front(),
          frozen_.size() > 1 ? "' and all other" : "', the only",
          " weights of products are frozen; adapters are for "
          "weights that would be trained, so leave --freeze "
          "out");
    }
    return "adapters are for weights of Gemm and MatMul, and it has none; "
           "convolutions have none";
  }

  std::string Names() const {
    constexpr size_t kMostNames = 12;
    std::vector<std::string> names;
    for (const auto& [n, target] : targets_) {
      names.push_back(graph_.value(target.weight).name);
    }
    if (names.empty()) return "none";
    const size_t count = names.size();
    if (count > kMostNames) names.resize(kMostNames);
    return absl::StrCat(absl::StrJoin(names, ", "),
                        count > kMostNames ? ", ..." : "");
  }

  void FreezeOthers() {
    for (models::Value& value : graph_.values) {
      if (value.kind == ValueKind::kParameter &&
          !models::MatchesAny(options_.train, value.name)) {
        value.kind = ValueKind::kState;
      }
    }
    for (const auto& [n, target] : targets_) {
      if (IsWanted(n, graph_.nodes[n])) {
        graph_.value(target.weight).kind = ValueKind::kState;
      }
    }
  }

  absl::StatusOr<ValueId> AddAdapter(const std::string& name, Tensor initial) {
    if (graph_.Find(name).has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the model already has a value named '", name,
                       "', the name of an adapter; rename it in the model"));
    }
    return graph_.AddParameter(name, std::move(initial));
  }

  absl::Status Adapt(const Node& node, const Target& target,
                     NodeReplacer& nodes) {
    const std::string name = graph_.value(target.weight).name;
    const models::Ints dims = graph_.value(target.weight).type.dims;
    const int64_t rank = options_.rank;
    const int64_t k = dims[target.transposed ? 1 : 0];
    const int64_t n = dims[target.transposed ? 0 : 1];
    const auto type = [&](int64_t rows, int64_t columns) {
      return target.transposed
                 ? TensorType{models::DType::kF32, {columns, rows}}
                 : TensorType{models::DType::kF32, {rows, columns}};
    };
    LOADLINE_ASSIGN_OR_RETURN(
        const ValueId a,
        AddAdapter(LoraAName(name), InitialA(name, type(k, rank), k)));
    LOADLINE_ASSIGN_OR_RETURN(
        const ValueId b, AddAdapter(LoraBName(name), Zeros(type(rank, n))));
    Attributes right;
    if (target.transposed) right.Set("trans_b", int64_t{1});
    LOADLINE_ASSIGN_OR_RETURN(
        const ValueId whole,
        nodes.Make(node, node.op.c_str(), node.inputs, node.attributes));
    LOADLINE_ASSIGN_OR_RETURN(
        ValueId h, nodes.Make(node, "MatMul", {node.inputs[0], a}, right));
    if (options_.scale() != 1) {
      LOADLINE_ASSIGN_OR_RETURN(h, nodes.Make(node, "Mul", {h, Scale()}, {}));
    }
    LOADLINE_ASSIGN_OR_RETURN(const ValueId low,
                              nodes.Make(node, "MatMul", {h, b}, right));
    LOADLINE_RETURN_IF_ERROR(
        nodes.Make(node, "Add", {whole, low}, {}).status());
    nodes.StandsFor(node);
    return absl::OkStatus();
  }

  ValueId Scale() {
    if (scale_ == models::kNoValue) {
      const auto scale = static_cast<float>(options_.scale());
      scale_ = graph_.AddConstant(
          "lora.scale", models::MakeTensor({models::DType::kF32, {}}, &scale));
    }
    return scale_;
  }

  Graph& graph_;
  const LoraOptions& options_;
  const models::GraphIndex index_;
  std::map<size_t, Target> targets_;  // by node, in order
  std::vector<std::string> frozen_;   // weights of products, in order
  std::optional<size_t> last_;        // makes the model's output
  ValueId scale_ = models::kNoValue;
};

}  // namespace

std::string LoraAName(absl::string_view weight) {
  return absl::StrCat(weight, ".lora_A");
}

std::string LoraBName(absl::string_view weight) {
  return absl::StrCat(weight, ".lora_B");
}

absl::Status AddLora(Graph& graph, const LoraOptions& options) {
  if (options.rank < 1 || !std::isfinite(options.alpha) || options.alpha <= 0) {
    return absl::InvalidArgumentError(
        "--lora: rank and alpha must be above zero");
  }
  return Lora(graph, options).Run();
}

Tensor MergedWeight(const Tensor& weight, const Tensor& a, const Tensor& b,
                    double scale) {
  const bool transposed = a.type.dims[0] != weight.type.dims[0];
  const Tensor& left = transposed ? b : a;
  const Tensor& right = transposed ? a : b;
  const auto rows = static_cast<size_t>(weight.type.dims[0]);
  const auto columns = static_cast<size_t>(weight.type.dims[1]);
  const auto rank = static_cast<size_t>(left.type.dims[1]);
  const auto numbers = [](const Tensor& tensor) {
    return reinterpret_cast<const float*>(tensor.data->data());
  };
  const float* w = numbers(weight);
  const float* l = numbers(left);
  const float* r = numbers(right);
  std::vector<float> merged(rows * columns);
  std::vector<double> row(columns);
  for (size_t i = 0; i < rows; ++i) {
    std::fill(row.begin(), row.end(), 0.0);
    for (size_t j = 0; j < rank; ++j) {
      const double factor = scale * static_cast<double>(l[i * rank + j]);
      for (size_t c = 0; c < columns; ++c) {
        row[c] += factor * static_cast<double>(r[j * columns + c]);
      }
    }
    for (size_t c = 0; c < columns; ++c) {
      merged[i * columns + c] =
          static_cast<float>(static_cast<double>(w[i * columns + c]) + row[c]);
    }
  }
  return models::MakeTensor(weight.type, merged.data());
}

}  // namespace loadline::passes
