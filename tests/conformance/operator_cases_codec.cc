// Cases of codecs. What random bytes cannot test (a Decode of groups, bf16,
// round trips) is in codec_test.cc.
#include <string>

#include "tests/conformance/operator_cases.h"

namespace loadline::conformance {
namespace {

using models::Ints;

InputSpec Bytes(int64_t count) {
  return {{models::DType::kU8, {count}}, 0, 255};
}

}  // namespace

void AddCodecCases(std::vector<OperatorCase>& cases) {
  const auto encode = [&](const std::string& codec, InputSpec input) {
    cases.push_back({"Encode",
                     codec + " " + std::to_string(cases.size()),
                     {std::move(input)},
                     {{"codec", codec}, {"salt", int64_t{5}}},
                     0});
  };
  const auto decode = [&](const std::string& codec, const std::string& to,
                          const Ints& shape, int64_t bytes) {
    cases.push_back({"Decode",
                     codec + " " + std::to_string(cases.size()),
                     {Bytes(bytes)},
                     {{"codec", codec}, {"to", to}, {"shape", shape}},
                     0});
  };
  for (const Ints& dims : std::vector<Ints>{{7, 13}, {8}, {0}, {40001}}) {
    encode("bits", Bool(dims));
    encode("positive", F32(dims));
    encode("u8", I32(dims, 0, 255));
    encode("i16", I64(dims, -32768, 32767));
    encode("i32", I64(dims, -2147483648.0, 2147483647.0));
    encode("bf16", F32(dims, 1.5, 1.5));
    for (const char* codec :
         {"group8", "group4", "group2", "group1", "group1_nearest"}) {
      encode(codec, F32(dims));
    }
  }
  decode("bits", "bool", {7, 13}, 12);
  decode("bits", "bool", {8}, 1);
  decode("bits", "bool", {0}, 0);
  decode("u8", "i32", {7, 13}, 91);
  decode("i8", "i64", {9}, 9);
  decode("u16", "i64", {40001}, 80002);
  decode("i16", "i32", {3}, 6);
  decode("i32", "i64", {5, 2}, 40);
  for (const Ints& dims : std::vector<Ints>{{7, 13}, {8}, {0}, {40001}}) {
    int64_t count = 1;
    for (int64_t dim : dims) count *= dim;
    cases.push_back({"ReluMaskGrad",
                     std::to_string(cases.size()),
                     {F32(dims), Bytes((count + 7) / 8)},
                     {},
                     0});
  }
}

}  // namespace loadline::conformance
