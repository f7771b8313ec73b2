light_sources(infer/image_list.cpp)
torch_sources(
  infer/bare_weights.cpp
  infer/evaluate_run.cpp
  infer/explain_run.cpp
  infer/loaded_model.cpp
  infer/predict.cpp
  infer/predict_files.cpp)
