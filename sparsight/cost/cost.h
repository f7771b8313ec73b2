// The cost of a component, computed from its sizes: the return value of cost() of layers, routers, experts and models.
// Sums, multiples and copies of it raise Error if they overflow 64 bits.
#pragma once

#include <cstdint>

namespace sparsight {

struct Cost {
  int64_t multiply_adds = 0;      // of matrix products and convolutions, of the unit that the function names
  int64_t elementwise = 0;        // all other arithmetic: one for each operation, exp, erf, tanh and square root
  int64_t parameters = 0;         // all of them
  int64_t active_parameters = 0;  // those that one token uses: of a layer's experts only the chosen ones
  int64_t weight_bytes = 0;       // of the weights that an image's forward pass reads, in fp32
  bool assumed = false;           // a default derived from the parameters alone, not declared by the component
};

Cost operator+(const Cost& a, const Cost& b);

// The same layer, with one set of parameters, applied to `times` units (tokens, positions), or to that many on average.
Cost on_units(const Cost& cost, int64_t times);
Cost on_average(const Cost& cost, double times);
// `count` layers with parameters of their own.
Cost copies(const Cost& cost, int64_t count);

// Parameters, all of them active and read, and nothing computed.
Cost parameters_cost(int64_t count);
// Arithmetic without parameters.
Cost elementwise_cost(int64_t operations);

// a * b; raises Error on overflow.
int64_t checked_product(int64_t a, int64_t b);

}  // namespace sparsight
