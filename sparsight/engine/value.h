// What a step of a program reads or writes: for each image `rows` of `columns` numbers, fp32. Tokens are rows: first
// `prefix` ones that are no patches, then those of a grid. A map is a grid of its positions, channels last; a vector is
// one row.
#pragma once

#include <cstdint>

namespace sparsight::engine {

struct Shape {
  int64_t prefix = 0, height = 1, width = 1, columns = 0;
  bool has_grid = true;  // false: of a vector
  static Shape vector(int64_t columns) { return {.columns = columns, .has_grid = false}; }
  int64_t rows() const { return prefix + height * width; }
  int64_t numbers() const { return rows() * columns; }
};

struct Value {
  int64_t number = -1;  // -1: none
  Shape shape;
  bool exists() const { return number >= 0; }
};

}  // namespace sparsight::engine
