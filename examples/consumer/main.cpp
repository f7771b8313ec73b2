#include <iostream>

#include <sparsight/core/nearest_name.h>
#include <sparsight/core/random.h>

int main() {
  sparsight::RandomStream stream(7, "consumer");
  std::cout << sparsight::nearest_name("ruter", {"router", "expert"}) << " " << stream.below(1) << "\n";
}
