light_sources(eval/task_loss.cpp)
torch_sources(
  eval/evaluate.cpp
  eval/guidance.cpp)
