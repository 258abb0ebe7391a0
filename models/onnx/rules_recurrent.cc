// Rules for LSTM, GRU and RNN, one set of nodes for each time step, so that a
// plan may keep, recompute or copy each step's values by itself. The product
// with the inputs is one for the whole sequence. The formulas are those of
// ONNX's specification of LSTM, GRU and RNN, opset 22. Tested in
// tests/conformance/onnx_node_test.cc and imported_operators_test.cc.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "models/onnx/emitter.h"
#include "models/onnx/importer.h"
#include "models/onnx/node_attributes.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

// A longer sequence would be too many nodes: about 40 for a step.
constexpr int64_t kMostTimeSteps = 2048;

enum Slot { kX, kW, kR, kB, kLengths, kFirstH, kFirstC, kPeepholes };

// An activation with its two numbers.
struct Activation {
  std::string name;
  double alpha = 0, beta = 0;
};

struct Known {
  const char* name;
  int numbers;  // how many of alpha and beta it has
  double alpha, beta;
};
constexpr Known kActivations[] = {
    {"relu", 0, 0, 0},
    {"tanh", 0, 0, 0},
    {"sigmoid", 0, 0, 0},
    {"softsign", 0, 0, 0},
    {"softplus", 0, 0, 0},
    {"leakyrelu", 1, 0.01, 0},
    {"elu", 1, 1, 0},
    {"thresholdedrelu", 1, 1, 0},
    {"affine", 2, 1, 0},
    {"scaledtanh", 2, 1, 1},
    {"hardsigmoid", 2, 0.2, 0.5},
};

// Sizes and attributes of a node.
struct Layer {
  int64_t gates = 0;  // 4 for an LSTM, 3 for a GRU, 1 for an RNN
  int64_t steps = 0, batch = 0, features = 0, hidden = 0, directions = 1;
  bool batch_first = false;
  bool starts_at_end = false;           // the first direction
  double clip = 0;                      // 0: none
  std::vector<Activation> activations;  // of all directions
};

std::vector<double> Floats(const onnx::NodeProto& node, const char* name) {
  std::vector<double> values;
  const onnx::AttributeProto* attribute = FindAttribute(node, name);
  if (attribute == nullptr) return values;
  for (float value : attribute->floats()) {
    values.push_back(ShortestDecimal(value));
  }
  return values;
}

absl::StatusOr<std::vector<Activation>> Activations(
    const onnx::NodeProto& node, const std::vector<std::string>& defaults,
    int64_t directions) {
  std::vector<std::string> names;
  const onnx::AttributeProto* given = FindAttribute(node, "activations");
  if (given != nullptr && given->strings_size() > 0) {
    names.assign(given->strings().begin(), given->strings().end());
  } else {
    for (int64_t d = 0; d < directions; ++d) {
      names.insert(names.end(), defaults.begin(), defaults.end());
    }
  }
  if (static_cast<int64_t>(names.size()) !=
      directions * static_cast<int64_t>(defaults.size())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has ", names.size(), " activations for ", directions, " directions"));
  }
  const std::vector<double> alphas = Floats(node, "activation_alpha");
  const std::vector<double> betas = Floats(node, "activation_beta");
  size_t alpha = 0, beta = 0;
  std::vector<Activation> activations;
  for (const std::string& name : names) {
    const std::string lower = absl::AsciiStrToLower(name);
    const auto* known =
        std::find_if(std::begin(kActivations), std::end(kActivations),
                     [&](const Known& entry) { return lower == entry.name; });
    if (known == std::end(kActivations)) {
      return absl::InvalidArgumentError(
          absl::StrCat("has an unknown activation '", name, "'"));
    }
    Activation activation{lower, known->alpha, known->beta};
    if (known->numbers > 0 && alpha < alphas.size()) {
      activation.alpha = alphas[alpha++];
    }
    if (known->numbers > 1 && beta < betas.size()) {
      activation.beta = betas[beta++];
    }
    activations.push_back(std::move(activation));
  }
  return activations;
}

absl::Status CheckDims(Importer& importer, const onnx::NodeProto& node, int i,
                       const Ints& dims) {
  if (!importer.Has(node, i) || importer.Type(node, i).dims == dims) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "input ", i, " is ", importer.Type(node, i).ToString(), ", expected ",
      TensorType{importer.Type(node, i).dtype, dims}.ToString()));
}

absl::Status CheckShapes(Importer& importer, const onnx::NodeProto& node,
                         const Layer& layer) {
  const int64_t rows = layer.gates * layer.hidden;
  const Ints states = layer.batch_first
                          ? Ints{layer.batch, layer.directions, layer.hidden}
                          : Ints{layer.directions, layer.batch, layer.hidden};
  const std::pair<int, Ints> expected[] = {
      {kW, {layer.directions, rows, layer.features}},
      {kR, {layer.directions, rows, layer.hidden}},
      {kB, {layer.directions, 2 * rows}},
      {kLengths, {layer.batch}},
      {kFirstH, states},
      {kFirstC, states},
      {kPeepholes, {layer.directions, 3 * layer.hidden}}};
  for (const auto& [i, dims] : expected) {
    LOADLINE_RETURN_IF_ERROR(CheckDims(importer, node, i, dims));
  }
  return absl::OkStatus();
}

absl::StatusOr<Layer> ReadLayer(Importer& importer, const onnx::NodeProto& node,
                                int64_t gates,
                                const std::vector<std::string>& activations) {
  Layer layer;
  layer.gates = gates;
  for (int i : {kX, kW, kR}) {
    if (!importer.Has(node, i) || importer.Type(node, i).rank() != 3) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " needs three axes"));
    }
  }
  layer.batch_first = IntAttribute(node, "layout", 0) != 0;
  const Ints& x = importer.Type(node, kX).dims;
  layer.steps = x[layer.batch_first ? 1 : 0];
  layer.batch = x[layer.batch_first ? 0 : 1];
  layer.features = x[2];
  layer.hidden = importer.Type(node, kR).dims[2];
  const std::string direction = StringAttribute(node, "direction", "forward");
  layer.directions = direction == "bidirectional" ? 2 : 1;
  layer.starts_at_end = direction == "reverse";
  layer.clip = FloatAttribute(node, "clip", 0);
  LOADLINE_ASSIGN_OR_RETURN(layer.activations,
                            Activations(node, activations, layer.directions));
  LOADLINE_RETURN_IF_ERROR(CheckShapes(importer, node, layer));
  return layer;
}

// What a direction has at a time step.
struct State {
  ValueId h = kNoValue;
  ValueId c = kNoValue;  // LSTM only
};

// Emits the steps of one direction.
class Direction {
 public:
  Direction(Importer& importer, const onnx::NodeProto& node, Emitter& e,
            const Layer& layer, int64_t index)
      : node_(node), e_(e), layer_(layer), index_(index) {
    w_ = Part(kW, {layer.gates * layer.hidden, layer.features});
    r_ = Part(kR, {layer.gates * layer.hidden, layer.hidden});
    if (importer.Has(node, kB)) {
      const int64_t rows = layer.gates * layer.hidden;
      const auto parts = Split(Part(kB, {2 * rows}), 0, {rows, rows});
      input_bias_ = parts[0];
      if (!importer.IsSingleBias(node, kB)) hidden_bias_ = parts[1];
    }
    linear_before_reset_ = IntAttribute(node, "linear_before_reset", 0) != 0;
    if (node.op_type() == "GRU" && !linear_before_reset_) {
      const auto parts = Split(r_, 0, {2 * layer.hidden, layer.hidden});
      r_gates_ = parts[0];
      r_new_ = parts[1];
    }
    if (importer.Has(node, kPeepholes)) {
      peepholes_ = Split(Part(kPeepholes, {3 * layer.hidden}), 0,
                         {layer.hidden, layer.hidden, layer.hidden});
    }
  }

  // The part of input `slot` that belongs to this direction.
  ValueId Part(int slot, Ints dims) {
    ValueId whole = e_.Input(slot);
    int64_t axis = 0;
    if (layer_.batch_first && (slot == kFirstH || slot == kFirstC)) axis = 1;
    if (layer_.directions > 1) {
      whole = e_.Emit("Slice", {whole},
                      {{"starts", Ints{index_}},
                       {"ends", Ints{index_ + 1}},
                       {"axes", Ints{axis}},
                       {"steps", Ints{1}}});
    }
    return e_.Reshape(whole, std::move(dims));
  }

  // [steps * batch, features] to the outputs [batch, hidden] by time.
  std::vector<ValueId> Run(ValueId x, const std::vector<ValueId>& masks,
                           State* state) {
    const bool from_end = layer_.starts_at_end || index_ == 1;
    const std::vector<ValueId> inputs =
        Split(Product(x, w_, XBias()), 0, Ints(layer_.steps, layer_.batch));
    std::vector<ValueId> outputs(static_cast<size_t>(layer_.steps));
    for (int64_t s = 0; s < layer_.steps && e_.status().ok(); ++s) {
      const auto t = static_cast<size_t>(from_end ? layer_.steps - 1 - s : s);
      const State next = Step(inputs[t], *state);
      outputs[t] = next.h;
      if (masks.empty()) {
        *state = next;
        continue;
      }
      outputs[t] = e_.Emit("Where", {masks[t], next.h, e_.Number(0)});
      state->h = e_.Emit("Where", {masks[t], next.h, state->h});
      if (next.c != kNoValue) {
        state->c = e_.Emit("Where", {masks[t], next.c, state->c});
      }
    }
    return outputs;
  }

 private:
  std::vector<ValueId> Split(ValueId x, int64_t axis, const Ints& sizes) {
    if (sizes.size() == 1) return {x};
    return e_.EmitAll("Split", {x}, {{"axis", axis}, {"sizes", sizes}},
                      sizes.size());
  }

  // a b' + c
  ValueId Product(ValueId a, ValueId b, ValueId c) {
    std::vector<ValueId> inputs = {a, b};
    if (c != kNoValue) inputs.push_back(c);
    return e_.Emit("Gemm", std::move(inputs), {{"transB", int64_t{1}}});
  }

  // The bias that is added once for the whole sequence.
  ValueId XBias() {
    if (input_bias_ == kNoValue) return kNoValue;
    if (node_.op_type() == "GRU" && linear_before_reset_) return input_bias_;
    if (hidden_bias_ == kNoValue) return input_bias_;
    return e_.Emit("Add", {input_bias_, hidden_bias_});
  }

  // Function i of the direction, of a gate's input, which `clip` bounds. It
  // does not bound the cell state: ONNX says "the input of activations", and
  // ONNX Runtime clips gates only.
  ValueId Gate(int i, ValueId x) {
    if (layer_.clip > 0) {
      x = e_.Emit("Clip", {x}, {{"min", -layer_.clip}, {"max", layer_.clip}});
    }
    return Activate(i, x);
  }

  ValueId Activate(int i, ValueId x) {
    const size_t per_direction =
        layer_.activations.size() / static_cast<size_t>(layer_.directions);
    const Activation& f =
        layer_.activations[static_cast<size_t>(index_) * per_direction +
                           static_cast<size_t>(i)];
    const Attributes alpha = {{"alpha", f.alpha}};
    const auto scaled = [&](ValueId y, double by) {
      return by == 1 ? y : e_.Emit("Mul", {y, e_.Number(by)});
    };
    if (f.name == "relu") return e_.Emit("Relu", {x});
    if (f.name == "tanh") return e_.Emit("Tanh", {x});
    if (f.name == "sigmoid") return e_.Emit("Sigmoid", {x});
    if (f.name == "softsign") return e_.Emit("Softsign", {x});
    if (f.name == "softplus") return e_.Emit("Softplus", {x});
    if (f.name == "leakyrelu") return e_.Emit("LeakyRelu", {x}, alpha);
    if (f.name == "elu") return e_.Emit("Elu", {x}, alpha);
    if (f.name == "thresholdedrelu") {
      return e_.Emit("ThresholdedRelu", {x}, alpha);
    }
    if (f.name == "hardsigmoid") {
      return e_.Emit("HardSigmoid", {x},
                     {{"alpha", f.alpha}, {"beta", f.beta}});
    }
    if (f.name == "scaledtanh") {
      return scaled(e_.Emit("Tanh", {scaled(x, f.beta)}), f.alpha);
    }
    return e_.Emit("Add", {scaled(x, f.alpha), e_.Number(f.beta)});  // affine
  }

  State Step(ValueId x, const State& state) {
    if (node_.op_type() == "LSTM") return LstmStep(x, state);
    if (node_.op_type() == "GRU") return GruStep(x, state);
    return {Gate(0, Product(state.h, r_, x)), kNoValue};
  }

  ValueId Peep(ValueId gate, size_t which, ValueId c) {
    if (peepholes_.empty()) return gate;
    return e_.Emit("Add", {gate, e_.Emit("Mul", {c, peepholes_[which]})});
  }

  // Gates in ONNX's order: input, output, forget, cell.
  State LstmStep(ValueId x, const State& state) {
    const int64_t h = layer_.hidden;
    const auto gates = Split(Product(state.h, r_, x), 1, {h, h, h, h});
    const ValueId input = Gate(0, Peep(gates[0], 0, state.c));
    const ValueId forget = IntAttribute(node_, "input_forget", 0) != 0
                               ? e_.Emit("Sub", {e_.Number(1), input})
                               : Gate(0, Peep(gates[2], 2, state.c));
    const ValueId cell = Gate(1, gates[3]);
    State next;
    next.c = e_.Emit("Add", {e_.Emit("Mul", {forget, state.c}),
                             e_.Emit("Mul", {input, cell})});
    const ValueId output = Gate(0, Peep(gates[1], 1, next.c));
    next.h = e_.Emit("Mul", {output, Activate(2, next.c)});
    return next;
  }

  // Gates in ONNX's order: update, reset, new.
  State GruStep(ValueId x, const State& state) {
    const int64_t h = layer_.hidden;
    const auto of_x = Split(x, 1, {2 * h, h});
    ValueId of_h = kNoValue, gates = kNoValue;
    if (linear_before_reset_) {
      const auto parts =
          Split(Product(state.h, r_, hidden_bias_), 1, {2 * h, h});
      gates = e_.Emit("Add", {of_x[0], parts[0]});
      of_h = parts[1];
    } else {
      gates = Product(state.h, r_gates_, of_x[0]);
    }
    const auto parts = Split(Gate(0, gates), 1, {h, h});
    const ValueId update = parts[0], reset = parts[1];
    ValueId fresh;
    if (linear_before_reset_) {
      fresh = e_.Emit("Add", {of_x[1], e_.Emit("Mul", {reset, of_h})});
    } else {
      fresh = Product(e_.Emit("Mul", {reset, state.h}), r_new_, of_x[1]);
    }
    fresh = Gate(1, fresh);
    // (1 - update) fresh + update h, as PyTorch computes it.
    const ValueId moved =
        e_.Emit("Mul", {update, e_.Emit("Sub", {state.h, fresh})});
    return {e_.Emit("Add", {fresh, moved}), kNoValue};
  }

  const onnx::NodeProto& node_;
  Emitter& e_;
  const Layer& layer_;
  const int64_t index_;  // 0 or 1
  bool linear_before_reset_ = false;
  ValueId w_ = kNoValue, r_ = kNoValue;
  ValueId input_bias_ = kNoValue, hidden_bias_ = kNoValue;
  ValueId r_gates_ = kNoValue, r_new_ = kNoValue;
  std::vector<ValueId> peepholes_;
};

// Where a sequence goes on: [batch, 1] for each time step; none where all are
// as long as the input.
std::vector<ValueId> Masks(Importer& importer, const onnx::NodeProto& node,
                           Emitter& e, const Layer& layer) {
  if (!importer.Has(node, kLengths)) return {};
  if (importer.IsConstant(node, kLengths)) {
    const auto lengths = importer.ConstantInts(node, kLengths);
    if (lengths.ok() &&
        std::all_of(lengths->begin(), lengths->end(),
                    [&](int64_t length) { return length == layer.steps; })) {
      return {};
    }
  }
  const ValueId lengths = e.Reshape(e.Input(kLengths), {layer.batch, 1});
  const DType dtype = e.type(lengths).dtype;
  std::vector<ValueId> masks;
  for (int64_t t = 0; t < layer.steps; ++t) {
    masks.push_back(
        e.Emit("Greater", {lengths, e.Number(static_cast<double>(t), dtype)}));
  }
  return masks;
}

// Y: outputs by direction and time, as [steps, directions, batch, hidden].
ValueId Sequence(Emitter& e, const Layer& layer,
                 const std::vector<std::vector<ValueId>>& outputs) {
  const int64_t d = layer.directions;
  std::vector<ValueId> parts;
  for (int64_t t = 0; t < layer.steps; ++t) {
    for (const std::vector<ValueId>& direction : outputs) {
      parts.push_back(e.Reshape(direction[static_cast<size_t>(t)],
                                {1, layer.batch, layer.hidden}));
    }
  }
  ValueId y = parts.size() == 1
                  ? parts[0]
                  : e.Emit("Concat", parts, {{"axis", int64_t{0}}});
  y = e.Reshape(y, {layer.steps, d, layer.batch, layer.hidden});
  return layer.batch_first ? e.Transpose(y, {2, 0, 1, 3}) : y;
}

// Y_h and Y_c.
ValueId Last(Emitter& e, const Layer& layer, std::vector<ValueId> states) {
  for (ValueId& state : states) {
    state = e.Reshape(state, {1, layer.batch, layer.hidden});
  }
  const ValueId all = states.size() == 1
                          ? states[0]
                          : e.Emit("Concat", states, {{"axis", int64_t{0}}});
  return layer.batch_first ? e.Transpose(all, {1, 0, 2}) : all;
}

absl::Status EmitLayer(Importer& importer, const onnx::NodeProto& node,
                       const Layer& layer) {
  if (layer.steps < 1 || layer.steps > kMostTimeSteps) {
    importer.Unsupported(node, absl::StrCat("of ", layer.steps, " time steps"));
    return absl::OkStatus();
  }
  Emitter e(importer, node);
  ValueId x = e.Input(kX);
  if (layer.batch_first) x = e.Transpose(x, {1, 0, 2});
  x = e.Reshape(x, {layer.steps * layer.batch, layer.features});
  const std::vector<ValueId> masks = Masks(importer, node, e, layer);
  std::vector<std::vector<ValueId>> outputs;
  std::vector<ValueId> last_h, last_c;
  for (int64_t d = 0; d < layer.directions; ++d) {
    Direction direction(importer, node, e, layer, d);
    const Ints dims = {layer.batch, layer.hidden};
    const auto start = [&](int slot) {
      return importer.Has(node, slot)
                 ? direction.Part(slot, dims)
                 : e.Constant(ZeroTensor({DType::kF32, dims}));
    };
    State state{start(kFirstH),
                node.op_type() == "LSTM" ? start(kFirstC) : kNoValue};
    outputs.push_back(direction.Run(x, masks, &state));
    last_h.push_back(state.h);
    last_c.push_back(state.c);
  }
  LOADLINE_RETURN_IF_ERROR(e.status());
  if (importer.Wants(node, 0)) {
    LOADLINE_RETURN_IF_ERROR(e.Define(0, Sequence(e, layer, outputs)));
  }
  if (importer.Wants(node, 1)) {
    LOADLINE_RETURN_IF_ERROR(e.Define(1, Last(e, layer, last_h)));
  }
  if (importer.Wants(node, 2)) {
    LOADLINE_RETURN_IF_ERROR(e.Define(2, Last(e, layer, last_c)));
  }
  return e.status();
}

absl::Status Lstm(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(
      const Layer layer,
      ReadLayer(importer, node, 4, {"Sigmoid", "Tanh", "Tanh"}));
  return EmitLayer(importer, node, layer);
}

absl::Status Gru(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(const Layer layer,
                            ReadLayer(importer, node, 3, {"Sigmoid", "Tanh"}));
  return EmitLayer(importer, node, layer);
}

absl::Status Rnn(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(const Layer layer,
                            ReadLayer(importer, node, 1, {"Tanh"}));
  return EmitLayer(importer, node, layer);
}

}  // namespace

const std::map<std::string, Rule>& RecurrentRules() {
  static const auto* const kRules = new std::map<std::string, Rule>{
      {"LSTM", Lstm}, {"GRU", Gru}, {"RNN", Rnn}};
  return *kRules;
}

}  // namespace loadline::models::onnx_internal
