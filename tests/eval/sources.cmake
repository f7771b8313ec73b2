light_tests(eval/task_loss_test.cpp)
torch_tests(eval/guidance_test.cpp)
