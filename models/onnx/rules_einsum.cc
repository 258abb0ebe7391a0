// The rule for Einsum: operands are combined from left to right by batched
// matrix products. Tested in tests/conformance/imported_operators_test.cc and
// onnx_node_test.cc.
//
// An axis has a label: a letter, or a number beyond the letters for an axis
// that the ellipsis stands for, counted from the last. Before two operands are
// combined, the axes that nothing else needs are summed, so each label of both
// is either a batch axis, needed later, or the sum of the product.
#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "models/onnx/emitter.h"
#include "models/onnx/importer.h"
#include "models/onnx/node_attributes.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

constexpr int kEllipsis = 256;  // label of its last axis

using Labels = std::vector<int>;

struct Operand {
  ValueId value = kNoValue;
  Labels labels;  // of the value's axes
};

bool Contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// The labels of one term, whose ellipsis stands for `hidden` axes.
absl::StatusOr<Labels> ReadTerm(absl::string_view term, int64_t hidden) {
  Labels labels;
  for (size_t i = 0; i < term.size(); ++i) {
    if (std::isalpha(static_cast<unsigned char>(term[i]))) {
      labels.push_back(term[i]);
    } else if (term.substr(i, 3) == "...") {
      for (int64_t k = hidden; k-- > 0;) {
        labels.push_back(kEllipsis + static_cast<int>(k));
      }
      i += 2;
    } else if (term[i] != ' ') {
      return absl::InvalidArgumentError(
          absl::StrCat("'", term, "' is no term of an equation"));
    }
  }
  return labels;
}

// Whether the labels of `operands` and `output` leave nothing to chance.
struct Equation {
  std::vector<Labels> operands;
  Labels output;
};

absl::StatusOr<Equation> ReadEquation(Importer& importer,
                                      const onnx::NodeProto& node) {
  const std::string text = StringAttribute(node, "equation", "");
  const std::vector<std::string> sides = absl::StrSplit(text, "->");
  const std::vector<std::string> terms = absl::StrSplit(sides[0], ',');
  if (sides.size() > 2 ||
      terms.size() != static_cast<size_t>(node.input_size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("equation '", text, "' does not fit its inputs"));
  }
  Equation equation;
  int64_t most_hidden = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    const int64_t rank = importer.Type(node, static_cast<int>(i)).rank();
    const int64_t letters =
        std::count_if(terms[i].begin(), terms[i].end(),
                      [](unsigned char c) { return std::isalpha(c) != 0; });
    const int64_t hidden = rank - letters;
    LOADLINE_ASSIGN_OR_RETURN(Labels labels,
                              ReadTerm(terms[i], std::max<int64_t>(0, hidden)));
    if (static_cast<int64_t>(labels.size()) != rank) {
      return absl::InvalidArgumentError(absl::StrCat(
          "term '", terms[i], "' does not fit an input of rank ", rank));
    }
    most_hidden = std::max(most_hidden, hidden);
    equation.operands.push_back(std::move(labels));
  }
  if (sides.size() == 2) {
    LOADLINE_ASSIGN_OR_RETURN(equation.output, ReadTerm(sides[1], most_hidden));
    return equation;
  }
  // Without an output: the ellipsis, then what occurs once, in order.
  std::map<int, int> uses;
  for (const Labels& labels : equation.operands) {
    for (int label : labels) ++uses[label];
  }
  for (int64_t k = most_hidden; k-- > 0;) {
    equation.output.push_back(kEllipsis + static_cast<int>(k));
  }
  for (const auto& [label, count] : uses) {
    if (label < kEllipsis && count == 1) equation.output.push_back(label);
  }
  return equation;
}

// The size of each label. An axis of one element fits any size.
absl::StatusOr<std::map<int, int64_t>> Sizes(Importer& importer,
                                             const onnx::NodeProto& node,
                                             const Equation& equation) {
  std::map<int, int64_t> sizes;
  for (size_t i = 0; i < equation.operands.size(); ++i) {
    const Ints& dims = importer.Type(node, static_cast<int>(i)).dims;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      int64_t& size =
          sizes.emplace(equation.operands[i][axis], 1).first->second;
      if (size != 1 && dims[axis] != 1 && size != dims[axis]) {
        return absl::InvalidArgumentError(absl::StrCat(
            "one label stands for axes of ", size, " and ", dims[axis]));
      }
      if (size == 1) size = dims[axis];
    }
  }
  for (int label : equation.output) {
    if (sizes.count(label) == 0 ||
        std::count(equation.output.begin(), equation.output.end(), label) > 1) {
      return absl::InvalidArgumentError(
          "the output of its equation has an unknown or repeated label");
    }
  }
  return sizes;
}

class EinsumBuilder {
 public:
  EinsumBuilder(Emitter& e, const std::map<int, int64_t>& sizes)
      : e_(e), sizes_(sizes) {}

  int64_t Size(const Labels& labels) const {
    int64_t size = 1;
    for (int label : labels) size *= sizes_.at(label);
    return size;
  }
  Ints Dims(const Labels& labels) const {
    Ints dims;
    for (int label : labels) dims.push_back(sizes_.at(label));
    return dims;
  }

  // x with its axes in the order of `labels`, which are all of x's.
  Operand Ordered(const Operand& x, const Labels& labels) {
    Ints perm;
    for (int label : labels) {
      perm.push_back(std::find(x.labels.begin(), x.labels.end(), label) -
                     x.labels.begin());
    }
    if (std::is_sorted(perm.begin(), perm.end())) return x;
    return {e_.Transpose(x.value, perm), labels};
  }

  // Without axes of one element where the label's size is another.
  Operand Squeezed(const Operand& x) {
    Operand result{x.value, {}};
    for (size_t i = 0; i < x.labels.size(); ++i) {
      if (e_.dims(x.value)[i] == sizes_.at(x.labels[i])) {
        result.labels.push_back(x.labels[i]);
      }
    }
    result.value = e_.Reshape(x.value, Dims(result.labels));
    return result;
  }

  // Takes the diagonals of repeated labels: the two axes become the last ones,
  // then one, of which every n + 1st element is taken.
  Operand WithoutRepeats(Operand x) {
    for (size_t i = 0; i < x.labels.size(); ++i) {
      const int label = x.labels[i];
      const size_t j = static_cast<size_t>(
          std::find(x.labels.begin() + static_cast<long>(i) + 1, x.labels.end(),
                    label) -
          x.labels.begin());
      if (j == x.labels.size()) continue;
      Ints perm;
      Labels others;
      for (size_t k = 0; k < x.labels.size(); ++k) {
        if (k == i || k == j) continue;
        perm.push_back(static_cast<int64_t>(k));
        others.push_back(x.labels[k]);
      }
      const int64_t axis = static_cast<int64_t>(perm.size());
      perm.push_back(static_cast<int64_t>(i));
      perm.push_back(static_cast<int64_t>(j));
      const int64_t n = sizes_.at(label);
      Ints flat = Dims(others);
      flat.push_back(n * n);
      const ValueId square = e_.Reshape(e_.Transpose(x.value, perm), flat);
      others.push_back(label);
      x = {e_.Emit("Slice", {square},
                   {{"starts", Ints{0}},
                    {"ends", Ints{n * n}},
                    {"axes", Ints{axis}},
                    {"steps", Ints{n + 1}}}),
           others};
      i = static_cast<size_t>(-1);  // look again from the first label
    }
    return x;
  }

  // Sums the axes whose label is not `needed`.
  Operand Summed(const Operand& x, const Labels& needed) {
    Operand result{x.value, {}};
    Ints axes;
    for (size_t i = 0; i < x.labels.size(); ++i) {
      if (Contains(needed, x.labels[i])) {
        result.labels.push_back(x.labels[i]);
      } else {
        axes.push_back(static_cast<int64_t>(i));
      }
    }
    if (!axes.empty()) {
      result.value = e_.Emit("ReduceSum", {x.value},
                             {{"axes", axes}, {"keepdims", int64_t{0}}});
    }
    return result;
  }

  // The product of a and b, summed over the labels of both that are not
  // `needed`.
  Operand Product(const Operand& a, const Operand& b, const Labels& needed) {
    Labels batch, sum, left, right;
    for (int label : a.labels) {
      if (!Contains(b.labels, label)) {
        left.push_back(label);
      } else {
        (Contains(needed, label) ? batch : sum).push_back(label);
      }
    }
    for (int label : b.labels) {
      if (!Contains(a.labels, label)) right.push_back(label);
    }
    const auto joined = [](Labels x, const Labels& y, const Labels& z) {
      x.insert(x.end(), y.begin(), y.end());
      x.insert(x.end(), z.begin(), z.end());
      return x;
    };
    const Operand x = Ordered(a, joined(batch, left, sum));
    const Operand y = Ordered(b, joined(batch, sum, right));
    const ValueId product = e_.Emit(
        "MatMul", {e_.Reshape(x.value, {Size(batch), Size(left), Size(sum)}),
                   e_.Reshape(y.value, {Size(batch), Size(sum), Size(right)})});
    Operand result{kNoValue, joined(batch, left, right)};
    result.value = e_.Reshape(product, Dims(result.labels));
    return result;
  }

 private:
  Emitter& e_;
  const std::map<int, int64_t>& sizes_;
};

absl::Status Einsum(Importer& importer, const onnx::NodeProto& node) {
  if (importer.Type(node, 0).dtype != DType::kF32) {
    importer.Unsupported(node, "on other types than f32");
    return absl::OkStatus();
  }
  LOADLINE_ASSIGN_OR_RETURN(const Equation equation,
                            ReadEquation(importer, node));
  LOADLINE_ASSIGN_OR_RETURN(const auto sizes, Sizes(importer, node, equation));
  Emitter e(importer, node);
  EinsumBuilder build(e, sizes);
  std::vector<Operand> operands;
  for (size_t i = 0; i < equation.operands.size(); ++i) {
    const Operand given{e.Input(static_cast<int>(i)), equation.operands[i]};
    if (!e.status().ok()) return e.status();
    operands.push_back(build.WithoutRepeats(build.Squeezed(given)));
  }
  // What is needed of operand i: the labels of the output and of later ones.
  const auto needed_after = [&](size_t i) {
    Labels needed = equation.output;
    for (size_t k = i + 1; k < operands.size(); ++k) {
      needed.insert(needed.end(), operands[k].labels.begin(),
                    operands[k].labels.end());
    }
    return needed;
  };
  Operand result = build.Summed(operands[0], needed_after(0));
  for (size_t i = 1; i < operands.size(); ++i) {
    Labels needed = needed_after(i);
    Labels both = needed;
    both.insert(both.end(), result.labels.begin(), result.labels.end());
    result = build.Product(result, build.Summed(operands[i], both), needed);
    result = build.Summed(result, needed);
  }
  // An output axis whose operands all have one element is such an axis.
  for (int label : equation.output) {
    if (!Contains(result.labels, label)) {
      return absl::InvalidArgumentError("an output label has no axis");
    }
  }
  return e.Define(0, build.Ordered(result, equation.output).value);
}

}  // namespace

const std::map<std::string, Rule>& EinsumRules() {
  static const auto* const kRules =
      new std::map<std::string, Rule>{{"Einsum", Einsum}};
  return *kRules;
}

}  // namespace loadline::models::onnx_internal
