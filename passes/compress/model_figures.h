// The size of a model in the figures that compression is about.
#ifndef LOADLINE_PASSES_COMPRESS_MODEL_FIGURES_H_
#define LOADLINE_PASSES_COMPRESS_MODEL_FIGURES_H_

#include <cstdint>

#include "models/graph.h"

namespace loadline::passes {

struct ModelFigures {
  int64_t parameters = 0;  // elements of trained and fixed weights
  // Multiply-adds of a forward pass of the whole batch, in products and
  // convolutions.
  int64_t macs = 0;
};

// Of an imported model, before any pass.
ModelFigures FiguresOf(const models::Graph& model);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_MODEL_FIGURES_H_
