light_sources(
  catalogue/dist_options.cpp
  catalogue/recipes.cpp
  catalogue/run_options.cpp
  catalogue/superclass_options.cpp
  catalogue/train_options.cpp)
torch_sources(catalogue/model_sections.cpp)
