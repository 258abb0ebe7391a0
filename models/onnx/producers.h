// Names that exporters give themselves in a file (ModelProto::producer_name).
#ifndef LOADLINE_MODELS_ONNX_PRODUCERS_H_
#define LOADLINE_MODELS_ONNX_PRODUCERS_H_

namespace loadline::models::onnx_internal {

inline constexpr char kPyTorch[] = "pytorch";     // both of its exporters
inline constexpr char kTensorFlow[] = "tf2onnx";  // Keras' export too

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_PRODUCERS_H_
