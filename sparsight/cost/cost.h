// What a component costs, by arithmetic on its sizes: the value that layers, routers, experts and models answer cost()
// with. Sums, multiples and copies of it raise Error where they leave 64 bits.
#pragma once

#include <cstdint>

namespace sparsight {

struct Cost {
  int64_t multiply_adds = 0;      // of matrix products and convolutions, of the unit that the function names
  int64_t elementwise = 0;        // all other arithmetic: one for each operation, exp, erf, tanh and square root
  int64_t parameters = 0;         // all of them
  int64_t active_parameters = 0;  // those that one token uses: of a layer's experts the chosen ones
  int64_t weight_bytes = 0;       // of the weights that an image's forward pass reads, in fp32
  bool assumed = false;           // by a default that looks at parameters alone, not declared by the component
};

Cost operator+(const Cost& a, const Cost& b);

// The same layer, with one set of parameters, on `times` units (tokens, places), or on so many on average.
Cost on_units(const Cost& cost, int64_t times);
Cost on_average(const Cost& cost, double times);
// `count` layers with parameters of their own.
Cost copies(const Cost& cost, int64_t count);

// Parameters, all of them active and read, and nothing computed.
Cost parameters_cost(int64_t count);
// Arithmetic without parameters.
Cost elementwise_cost(int64_t operations);

// a * b, which must fit.
int64_t checked_product(int64_t a, int64_t b);

}  // namespace sparsight
