#include "attune/amp.h"

#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn.h>
#include <torch/optim.h>

#include <cmath>
#include <limits>

#include "attune/error.h"

namespace attune::inline sdk {
namespace {

at::ScalarType TypeOfProduct() {
  const at::Tensor matrix = at::ones({2, 2});
  return at::matmul(matrix, matrix).scalar_type();
}

TEST(Autocast, MultipliesMatricesInBfloat16WhileAGuardExists) {
  EXPECT_EQ(TypeOfProduct(), at::kFloat);
  {
    const Autocast autocast(at::kCPU);
    EXPECT_EQ(TypeOfProduct(), at::kBFloat16);
  }
  EXPECT_EQ(TypeOfProduct(), at::kFloat);
}

TEST(Autocast, ANestedGuardRestoresThePreviousSetting) {
  const Autocast outer(at::kCPU);
  {
    const Autocast off(at::kCPU, at::kBFloat16, /*enabled=*/false);
    EXPECT_EQ(TypeOfProduct(), at::kFloat);
    const Autocast half(at::kCPU, at::kHalf);
    EXPECT_EQ(TypeOfProduct(), at::kHalf);
  }
  EXPECT_EQ(TypeOfProduct(), at::kBFloat16);
}

TEST(Autocast, CastsWeightsAgainAfterAnOptimizerStep) {
  torch::nn::Linear linear(torch::nn::LinearOptions(1, 1).bias(false));
  const auto forward = [&] {
    const Autocast autocast(at::kCPU);
    return linear(at::ones({1, 1})).item<float>();
  };
  torch::nn::init::ones_(linear->weight);
  EXPECT_EQ(forward(), 1);
  torch::nn::init::constant_(linear->weight, 2);
  EXPECT_EQ(forward(), 2);
}

TEST(Autocast, RefusesOtherTypesAndDevices) {
  EXPECT_THROW(Autocast(at::kCPU, at::kFloat), Error);
  EXPECT_THROW(Autocast(at::kMeta), Error);
  EXPECT_EQ(TypeOfProduct(), at::kFloat);
}

// A model with one weight, and an optimizer that subtracts its gradient.
struct Training {
  Training() : sgd({weight}, /*lr=*/1) {}

  // Runs a step with this gradient.
  bool Step(double gradient) {
    sgd.zero_grad();
    scaler.scale((weight * gradient).sum()).backward();
    const bool stepped = scaler.step(sgd);
    scaler.update();
    return stepped;
  }

  at::Tensor weight = at::ones({1}).set_requires_grad(true);
  torch::optim::SGD sgd;
  GradScaler scaler{{.init_scale = 1024, .growth_interval = 3}};
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(GradScaler, StepsEqualThoseWithoutAScaler) {
  Training training;
  EXPECT_TRUE(training.Step(0.3));
  EXPECT_EQ(training.weight.item<float>(), 1.0f - 0.3f);
}

TEST(GradScaler, SkipsAStepThatOverflowsAndHalvesTheScale) {
  for (const double bad : {kInfinity, -kInfinity, std::nan("")}) {
    Training training;
    EXPECT_FALSE(training.Step(bad));
    EXPECT_EQ(training.weight.item<float>(), 1);
    EXPECT_EQ(training.scaler.get_scale(), 512);
  }
}

TEST(GradScaler, GrowsAfterAnIntervalWithoutAnOverflow) {
  Training training;
  for (int i = 0; i < 2; ++i) training.Step(0.1);
  EXPECT_EQ(training.scaler.get_scale(), 1024);
  training.Step(0.1);
  EXPECT_EQ(training.scaler.get_scale(), 2048);
  for (int i = 0; i < 2; ++i) training.Step(0.1);
  training.Step(kInfinity);  // restarts the interval
  for (int i = 0; i < 2; ++i) training.Step(0.1);
  EXPECT_EQ(training.scaler.get_scale(), 1024);
}

TEST(GradScaler, UnscalesGradientsOnlyOnce) {
  Training training;
  training.scaler.scale((training.weight * 0.5).sum()).backward();
  EXPECT_EQ(training.weight.grad().item<float>(), 512);
  training.scaler.unscale_(training.sgd);
  EXPECT_EQ(training.weight.grad().item<float>(), 0.5);
  EXPECT_TRUE(training.scaler.step(training.sgd));
  EXPECT_EQ(training.weight.item<float>(), 0.5);
}

TEST(GradScaler, UnscalesARepeatedParameterOnce) {
  Training training;
  training.sgd.param_groups()[0].params().push_back(training.weight);
  training.scaler.scale((training.weight * 0.5).sum()).backward();
  training.scaler.unscale_(training.sgd);
  EXPECT_EQ(training.weight.grad().item<float>(), 0.5);
}

TEST(GradScaler, AnOverflowSkipsTheStepOfItsOptimizerOnly) {
  Training training;
  at::Tensor other = at::ones({1}).set_requires_grad(true);
  torch::optim::SGD sgd({other}, 1);
  training.scaler.scale((training.weight * 0.5 + other * kInfinity).sum()).backward();
  EXPECT_TRUE(training.scaler.step(training.sgd));
  EXPECT_FALSE(training.scaler.step(sgd));
  training.scaler.update();
  EXPECT_EQ(training.scaler.get_scale(), 512);
}

TEST(GradScaler, ContinuesFromItsState) {
  Training training;
  for (int i = 0; i < 2; ++i) training.Step(0.1);
  Training resumed;
  resumed.scaler = GradScaler({.init_scale = 2, .growth_interval = 3});
  resumed.scaler.load_state_dict(training.scaler.state_dict());
  EXPECT_EQ(resumed.scaler.get_scale(), 1024);
  resumed.Step(0.1);
  EXPECT_EQ(resumed.scaler.get_scale(), 2048);
}

TEST(GradScaler, ChangesNothingWhenDisabled) {
  Training training;
  training.scaler = GradScaler({.enabled = false});
  EXPECT_TRUE(training.Step(0.5));
  EXPECT_EQ(training.weight.item<float>(), 0.5);
  EXPECT_EQ(training.scaler.get_scale(), 1);
}

TEST(GradScaler, RefusesCallsOutOfOrder) {
  Training training;
  EXPECT_THROW(training.scaler.update(), Error);
  EXPECT_THROW(training.scaler.step(training.sgd), Error) << "there is no gradient";
  training.scaler.scale(training.weight.sum()).backward();
  training.scaler.unscale_(training.sgd);
  EXPECT_THROW(training.scaler.unscale_(training.sgd), Error);
  training.scaler.step(training.sgd);
  EXPECT_THROW(training.scaler.step(training.sgd), Error);
}

TEST(GradScaler, RefusesHalfGradientsAndForeignStates) {
  at::Tensor half = at::ones({1}, at::kHalf).set_requires_grad(true);
  torch::optim::SGD sgd({half}, 1);
  GradScaler scaler;
  half.mutable_grad() = at::ones({1}, at::kHalf);
  EXPECT_THROW(scaler.unscale_(sgd), Error);
  EXPECT_THROW(scaler.load_state_dict({}), Error);
  EXPECT_THROW(GradScaler({.growth_factor = 1}), Error);
  EXPECT_THROW(GradScaler({.init_scale = kInfinity}), Error);
}

}  // namespace
}  // namespace attune::inline sdk
