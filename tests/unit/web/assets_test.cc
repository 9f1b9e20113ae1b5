#include "web/assets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

namespace attune {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

TEST(WebAssets, ContainTheMainPage) {
  const auto assets = WebAssets();
  const auto index = std::ranges::find(assets, "/index.html", &WebAsset::path);
  ASSERT_NE(index, assets.end());
  EXPECT_EQ(index->mime, "text/html; charset=utf-8");
  EXPECT_FALSE(index->body.empty());
}

TEST(WebAssets, AreSortedByPath) {
  EXPECT_TRUE(std::ranges::is_sorted(WebAssets(), {}, &WebAsset::path));
}

TEST(WebAssets, HaveQuotedEtagsAndDeclareTheirCompression) {
  constexpr std::string_view kGzipMagic = "\x1f\x8b";
  for (const WebAsset& asset : WebAssets()) {
    SCOPED_TRACE(asset.path);
    EXPECT_THAT(asset.path, StartsWith("/"));
    EXPECT_THAT(asset.etag, StartsWith("\""));
    EXPECT_THAT(asset.etag, EndsWith("\""));
    EXPECT_GT(asset.etag.size(), 2U);
    EXPECT_EQ(asset.body.starts_with(kGzipMagic), asset.gzip);
  }
}

}  // namespace
}  // namespace attune
