// Trains a multilayer perceptron and a small convolutional network on the
// digits, and quantizes them.
//
//   quantized_models ZOO OUT_DIR             exports cases for quantized_test
//   quantized_models ZOO OUT_DIR --figures N [FIRST]
//                                            prints the table of
//                                            docs/compression.md over N seeds
//                                            from FIRST (1) on
//
// A case is NAME.onnx, NAME.logits (f32, what Loadline computes for the test
// images), and a line "NAME IMAGES FUSED" of cases.txt: how many nodes ONNX
// Runtime must fuse to integer kernels, -1 for any number.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <random>
#include <string>

#include "onnx/defs/parser.h"
#include "tests/onnxruntime/quantized_training.h"

namespace loadline {
namespace {

using passes::Quantizer;
using passes::QuantizeSpec;
using passes::QuantizeStage;

constexpr int64_t kSteps = 1320;  // 30 epochs
constexpr int64_t kTuningSteps = 440;
constexpr int64_t kCalibration = 8;

constexpr char kCnn[] = R"(<ir_version: 8, opset_import: ["" : 17]>
digits (float[batch,1,8,8] image) => (float[batch,10] logits) {
  c1 = Conv<kernel_shape = [3,3], pads = [1,1,1,1]>(image, conv1_weight)
  n1 = BatchNormalization(c1, bn1_weight, bn1_bias, bn1_mean, bn1_var)
  r1 = Relu(n1)
  c2 = Conv<kernel_shape = [3,3], pads = [1,1,1,1]>(r1, conv2_weight)
  n2 = BatchNormalization(c2, bn2_weight, bn2_bias, bn2_mean, bn2_var)
  r2 = Relu(n2)
  p2 = MaxPool<kernel_shape = [2,2], strides = [2,2]>(r2)
  c3 = Conv<kernel_shape = [3,3], pads = [1,1,1,1]>(p2, conv3_weight, conv3_bias)
  r3 = Relu(c3)
  f = Flatten(r3)
  logits = Gemm<transB = 1>(f, fc_weight, fc_bias)
})";

struct Parameter {
  const char* name;
  std::vector<int64_t> dims;
  double spread;  // of uniform numbers about 0; 0: all are `value`
  float value;
};

// Writes the network with He's initial weights; false on failure.
bool WriteCnn(const std::string& path) {
  onnx::ModelProto model;
  const auto parsed = onnx::OnnxParser::Parse(model, kCnn);
  if (!parsed.IsOK()) {
    std::cerr << parsed.ErrorMessage() << "\n";
    return false;
  }
  std::mt19937 random(1);
  for (const Parameter& p : std::vector<Parameter>{
           {"conv1_weight", {8, 1, 3, 3}, std::sqrt(6.0 / 9), 0},
           {"bn1_weight", {8}, 0, 1},
           {"bn1_bias", {8}, 0, 0},
           {"bn1_mean", {8}, 0, 0},
           {"bn1_var", {8}, 0, 1},
           {"conv2_weight", {16, 8, 3, 3}, std::sqrt(6.0 / 72), 0},
           {"bn2_weight", {16}, 0, 1},
           {"bn2_bias", {16}, 0, 0},
           {"bn2_mean", {16}, 0, 0},
           {"bn2_var", {16}, 0, 1},
           {"conv3_weight", {16, 16, 3, 3}, std::sqrt(6.0 / 144), 0},
           {"conv3_bias", {16}, 0, 0},
           {"fc_weight", {10, 256}, std::sqrt(3.0 / 256), 0},
           {"fc_bias", {10}, 0, 0}}) {
    onnx::TensorProto* proto = model.mutable_graph()->add_initializer();
    proto->set_name(p.name);
    proto->set_data_type(onnx::TensorProto::FLOAT);
    int64_t elements = 1;
    for (int64_t dim : p.dims) {
      proto->add_dims(dim);
      elements *= dim;
    }
    std::vector<float> numbers(static_cast<size_t>(elements), p.value);
    if (p.spread > 0) {
      for (float& x : numbers) {
        const double unit = static_cast<double>(random()) / 4294967296.0;
        x = static_cast<float>(p.spread * (2 * unit - 1));
      }
    }
    proto->set_raw_data(std::string(
        reinterpret_cast<const char*>(numbers.data()), numbers.size() * 4));
  }
  std::ofstream file(path, std::ios::binary);
  return model.SerializeToOstream(&file) && file.flush().good();
}

QuantizeSpec Bits(int64_t weight, int64_t activation = 8) {
  QuantizeSpec spec;
  spec.bits = {weight, activation, activation};
  return spec;
}

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << status << "\n";
  std::exit(1);
}

QuantizedTraining Trained(const std::string& model, const std::string& zoo,
                          uint64_t seed) {
  QuantizedTraining training(model, zoo, seed);
  Require(training.Train({.steps = kSteps}));
  return training;
}

// Ranges, and the running statistics that go with codebooks.
void Start(QuantizedTraining& training, const QuantizeSpec& spec) {
  Require(training.Calibrate(spec, kCalibration));
  if (spec.quantizer != Quantizer::kKMeans) return;
  Require(training.EstimateStatistics(spec, kCalibration));
}

// 2 of 3 times with a smaller learning rate, and frozen at the end.
void Tune(QuantizedTraining& training, const QuantizeSpec& spec) {
  Start(training, spec);
  Require(training.Train(
      {.quantize = spec, .steps = kTuningSteps / 2, .learning_rate = 1e-3f}));
  Require(training.Train({.quantize = spec,
                          .stage = QuantizeStage::kFrozen,
                          .freeze_bn = true,
                          .steps = kTuningSteps / 2,
                          .learning_rate = 3e-4f}));
}

double Accuracy(QuantizedTraining& training,
                const std::optional<QuantizeSpec>& spec) {
  const auto outcome = training.Test(spec);
  Require(outcome.status());
  return 100 * outcome->accuracy;
}

double AfterTraining(QuantizedTraining training, const QuantizeSpec& spec) {
  Start(training, spec);
  return Accuracy(training, spec);
}

double AfterTuning(QuantizedTraining training, const QuantizeSpec& spec) {
  Tune(training, spec);
  return Accuracy(training, spec);
}

QuantizeSpec KMeansBits(int64_t bits) {
  QuantizeSpec spec = Bits(bits);
  spec.quantizer = Quantizer::kKMeans;
  spec.targets = {true, false, false};
  return spec;
}

void PrintFigures(const std::string& model, const std::string& zoo, int seeds,
                  int first) {
  QuantizeSpec lsq = Bits(2);
  lsq.quantizer = Quantizer::kLsq;
  QuantizeSpec per_tensor = Bits(2);
  per_tensor.per_channel.weight = false;
  struct Row {
    const char* name;
    std::function<double(const QuantizedTraining&)> measure;
  };
  const std::vector<Row> rows = {
      {"fp32", [](QuantizedTraining t) { return Accuracy(t, std::nullopt); }},
      {"W8A8 after training",
       [](const QuantizedTraining& t) { return AfterTraining(t, Bits(8)); }},
      {"W4A8 after training",
       [](const QuantizedTraining& t) { return AfterTraining(t, Bits(4)); }},
      {"W2A8 after training",
       [](const QuantizedTraining& t) { return AfterTraining(t, Bits(2)); }},
      {"W2A8 trained",
       [](const QuantizedTraining& t) { return AfterTuning(t, Bits(2)); }},
      {"W2A8 per tensor after training",
       [&](const QuantizedTraining& t) {
         return AfterTraining(t, per_tensor);
       }},
      {"W2A8 per tensor trained",
       [&](const QuantizedTraining& t) { return AfterTuning(t, per_tensor); }},
      {"W2A8 trained, lsq",
       [&](const QuantizedTraining& t) { return AfterTuning(t, lsq); }},
      {"kmeans 3 bits after training",
       [](const QuantizedTraining& t) {
         return AfterTraining(t, KMeansBits(3));
       }},
      {"kmeans 3 bits trained",
       [](const QuantizedTraining& t) {
         return AfterTuning(t, KMeansBits(3));
       }},
      {"kmeans 2 bits after training",
       [](const QuantizedTraining& t) {
         return AfterTraining(t, KMeansBits(2));
       }},
      {"kmeans 2 bits trained", [](const QuantizedTraining& t) {
         return AfterTuning(t, KMeansBits(2));
       }}};
  std::vector<double> sums(rows.size(), 0);
  for (int seed = first; seed < first + seeds; ++seed) {
    const QuantizedTraining trained =
        Trained(model, zoo, static_cast<uint64_t>(seed));
    for (size_t i = 0; i < rows.size(); ++i) {
      sums[i] += rows[i].measure(trained);
    }
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    std::printf("| %s | %s | %.2f |\n",
                model.substr(model.rfind('/') + 1).c_str(), rows[i].name,
                sums[i] / seeds);
  }
  std::fflush(stdout);
}

class CaseWriter {
 public:
  explicit CaseWriter(std::string folder)
      : folder_(std::move(folder)), list_(folder_ + "/cases.txt") {}

  void Write(const std::string& name, QuantizedTraining& training,
             const QuantizeSpec& spec, int fused) {
    Require(training.Export(spec, folder_ + "/" + name + ".onnx"));
    const auto outcome = training.Test(spec);
    Require(outcome.status());
    std::ofstream file(folder_ + "/" + name + ".logits", std::ios::binary);
    file.write(reinterpret_cast<const char*>(outcome->logits.data()),
               static_cast<std::streamsize>(outcome->logits.size() * 4));
    list_ << name << " " << outcome->logits.size() / 10 << " " << fused << "\n";
    std::cerr << name << ": " << 100 * outcome->accuracy << " %\n";
  }

 private:
  const std::string folder_;
  std::ofstream list_;
};

void WriteCases(const std::string& mlp, const std::string& cnn,
                const std::string& zoo, const std::string& folder) {
  CaseWriter cases(folder);
  const auto both = [&](const std::string& model, const std::string& name,
                        int fused) {
    const QuantizedTraining trained = Trained(model, zoo, 1);
    for (int64_t bits : {8, 4}) {
      QuantizedTraining t = trained;
      Require(t.Calibrate(Bits(bits), kCalibration));
      cases.Write(name + "_w" + std::to_string(bits) + "a8", t, Bits(bits),
                  fused);
    }
    QuantizeSpec reduced = Bits(8);
    reduced.reduce_range = true;
    QuantizedTraining t = trained;
    Require(t.Calibrate(reduced, kCalibration));
    cases.Write(name + "_reduced", t, reduced, fused);
    QuantizeSpec lsq = Bits(4);
    lsq.quantizer = Quantizer::kLsq;
    t = trained;
    Tune(t, lsq);
    cases.Write(name + "_lsq", t, lsq, fused);
    t = trained;
    Tune(t, Bits(2));
    cases.Write(name + "_w2a8", t, Bits(2), fused);
    QuantizeSpec symmetric = Bits(8);
    symmetric.per_channel.weight = false;
    t = trained;
    Require(t.Calibrate(symmetric, kCalibration));
    cases.Write(name + "_per_tensor", t, symmetric, fused);
    t = trained;
    Require(t.Calibrate(Bits(8, 4), kCalibration));
    cases.Write(name + "_w8a4", t, Bits(8, 4), -1);
    t = trained;
    Tune(t, KMeansBits(3));
    cases.Write(name + "_kmeans", t, KMeansBits(3), 0);
  };
  both(mlp, "mlp", 3);
  both(cnn, "cnn", 4);
}

int Main(int argc, char** argv) {
  if (argc != 3 && argc != 5 && argc != 6) {
    std::cerr
        << "usage: quantized_models ZOO OUT_DIR [--figures SEEDS [FIRST]]\n";
    return 2;
  }
  const std::string zoo = argv[1];
  const std::string folder = argv[2];
  const std::string mlp = zoo + "/mlp.onnx";
  const std::string cnn = folder + "/digits_cnn.onnx";
  if (!WriteCnn(cnn)) return 1;
  if (argc >= 5) {
    const int first = argc == 6 ? std::atoi(argv[5]) : 1;
    PrintFigures(mlp, zoo, std::atoi(argv[4]), first);
    PrintFigures(cnn, zoo, std::atoi(argv[4]), first);
    return 0;
  }
  WriteCases(mlp, cnn, zoo, folder);
  return 0;
}

}  // namespace
}  // namespace loadline

int main(int argc, char** argv) { return loadline::Main(argc, argv); }
