// Takes elements out of a repeated field of a protobuf, in one pass.
#ifndef LOADLINE_MODELS_ONNX_ERASE_IF_H_
#define LOADLINE_MODELS_ONNX_ERASE_IF_H_

namespace loadline::models::onnx_internal {

// Erases the elements for which `erases(&element)` returns true. Calls `erases`
// once for each element, in order; it may move the contents of an element that
// it erases. The other elements keep their order and their addresses.
template <typename Elements, typename Erases>
void EraseIf(Elements* elements, Erases erases) {
  int kept = 0;
  for (int i = 0; i < elements->size(); ++i) {
    if (erases(elements->Mutable(i))) continue;
    if (i != kept) elements->SwapElements(i, kept);
    ++kept;
  }
  elements->DeleteSubrange(kept, elements->size() - kept);
}

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_ERASE_IF_H_
