light_sources(infer/image_list.cpp)
torch_sources(
  infer/loaded_model.cpp
  infer/predict.cpp)
