#include "server/http/transport/framing.h"

#include <gtest/gtest.h>

namespace attune::server {
namespace {

using State = Framing::State;

constexpr std::string_view kGet = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";

std::string Post(const std::string& headers, const std::string& body) {
  return "POST /x HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n" + body;
}

State Read(const std::string& bytes) {
  Framing framing;
  return framing.Read(bytes);
}

rest::ProblemType ProblemOf(const std::string& bytes) {
  Framing framing;
  EXPECT_EQ(framing.Read(bytes), State::kBad) << bytes;
  return framing.fault().type;
}

// The result must not depend on how the bytes arrive.
size_t SizeOf(const std::string& bytes) {
  Framing whole;
  EXPECT_EQ(whole.Read(bytes), State::kWhole) << bytes;
  Framing piecewise;
  for (size_t i = 1; i < whole.size(); ++i) {
    EXPECT_NE(piecewise.Read(std::string_view(bytes).substr(0, i)), State::kWhole) << i;
    EXPECT_NE(piecewise.Read(std::string_view(bytes).substr(0, i)), State::kBad) << i;
  }
  EXPECT_EQ(piecewise.Read(bytes), State::kWhole);
  EXPECT_EQ(piecewise.size(), whole.size());
  return whole.size();
}

TEST(Framing, ARequestWithoutABodyEndsWithItsHead) {
  EXPECT_EQ(SizeOf(std::string(kGet)), kGet.size());
  EXPECT_EQ(SizeOf(std::string(kGet) + "GET"), kGet.size());
}

TEST(Framing, ABodyHasTheDeclaredLength) {
  const std::string request = Post("content-length:  5 \r\n", "12345");
  EXPECT_EQ(SizeOf(request + "GET /"), request.size());
  EXPECT_EQ(SizeOf(Post("Content-Length: 0\r\n", "")), Post("Content-Length: 0\r\n", "").size());
}

TEST(Framing, AChunkedBodyEndsWithItsLastChunk) {
  const std::string request =
      Post("Transfer-Encoding: chunked\r\n", "3;note=1\r\nabc\r\nA\r\n0\r\n\r\n12345\r\n0\r\n\r\n");
  EXPECT_EQ(SizeOf(request + "GET /"), request.size());
}

TEST(Framing, TheHeadIsReadBeforeTheBodyArrives) {
  Framing framing;
  EXPECT_EQ(framing.Read(Post("Content-Length: 5\r\nExpect: 100-continue\r\n", "12")),
            State::kBody);
  EXPECT_EQ(framing.head().method, "POST");
  EXPECT_EQ(framing.head().path, "/x");
  EXPECT_EQ(framing.head().Header("host"), "localhost");
  EXPECT_TRUE(framing.expects_continue());
  EXPECT_EQ(framing.length(), 5u);
}

TEST(Framing, AmbiguousRequestsAreRefused) {
  EXPECT_EQ(ProblemOf(Post("Content-Length: 5\r\nContent-Length: 6\r\n", "")),
            rest::ProblemType::kMalformedRequest);
  EXPECT_EQ(ProblemOf(Post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "")),
            rest::ProblemType::kMalformedRequest);
  EXPECT_EQ(ProblemOf(Post("Transfer-Encoding: gzip, chunked\r\n", "")),
            rest::ProblemType::kUnknownEncoding);
  EXPECT_EQ(ProblemOf(Post("Content-Length: -5\r\n", "")), rest::ProblemType::kMalformedRequest);
  EXPECT_EQ(ProblemOf(Post("Content-Length: +5\r\n", "")), rest::ProblemType::kMalformedRequest);
  EXPECT_EQ(ProblemOf(Post("Content-Length: 99999999999999999999\r\n", "")),
            rest::ProblemType::kMalformedRequest);
  EXPECT_EQ(ProblemOf(Post("Content-Length : 5\r\n", "")), rest::ProblemType::kMalformedRequest);
  EXPECT_EQ(ProblemOf(Post("X: 1\r\n folded\r\n", "")), rest::ProblemType::kMalformedRequest);
  EXPECT_EQ(ProblemOf("GET / HTTP/1.1\nHost: localhost\n\n"), rest::ProblemType::kMalformedRequest);
  EXPECT_EQ(ProblemOf("GET / HTTP/1.1\r\nX: a\rb\r\n\r\n"), rest::ProblemType::kMalformedRequest);
  EXPECT_EQ(ProblemOf(std::string("GET /\0 HTTP/1.1\r\n\r\n", 20)),
            rest::ProblemType::kMalformedRequest);
}

TEST(Framing, AChunkOfTheWrongLengthIsRefused) {
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  EXPECT_EQ(ProblemOf(Post(chunked, "3\r\nabcd\r\n")), rest::ProblemType::kMalformedRequest);
  EXPECT_EQ(ProblemOf(Post(chunked, "x\r\n")), rest::ProblemType::kMalformedRequest);
  EXPECT_EQ(ProblemOf(Post(chunked, "\r\n")), rest::ProblemType::kMalformedRequest);
  EXPECT_EQ(ProblemOf(Post(chunked, "0\r\nTrailer: 1\r\n\r\n")),
            rest::ProblemType::kMalformedRequest);
  EXPECT_EQ(ProblemOf(Post(chunked, std::string(300, '1'))), rest::ProblemType::kMalformedRequest);
}

TEST(Framing, AHeadHasAMaximumLength) {
  const std::string begin = "GET / HTTP/1.1\r\nX: ";
  const std::string fits = begin + std::string(kMaxHeadBytes - begin.size(), 'x') + "\r\n\r\n";
  EXPECT_EQ(Read(fits), State::kWhole);
  EXPECT_EQ(ProblemOf(begin + std::string(kMaxHeadBytes - begin.size() + 1, 'x') + "\r\n\r\n"),
            rest::ProblemType::kHeadersTooLarge);
  EXPECT_EQ(ProblemOf(begin + std::string(kMaxHeadBytes, 'x')),
            rest::ProblemType::kHeadersTooLarge);  // the head has no end yet
}

TEST(Framing, AChunkedBodyHasAMaximumLength) {
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  const std::string half = "80000\r\n" + std::string(0x80000, 'x') + "\r\n";
  EXPECT_EQ(Read(Post(chunked, half + half + "0\r\n\r\n")), State::kWhole);
  EXPECT_EQ(ProblemOf(Post(chunked, half + half + "1\r\n")), rest::ProblemType::kBodyTooLarge);
  EXPECT_EQ(ProblemOf(Post(chunked, "ffffffffffffffff\r\n")), rest::ProblemType::kBodyTooLarge);
}

TEST(Framing, ABodyThatIsTooLongIsNotWaitedFor) {
  Framing framing;
  EXPECT_EQ(framing.Read(Post("Content-Length: " + std::to_string(kMaxBodyBytes + 1) + "\r\n",
                              std::string(kMaxBodyBytes + 1, 'x'))),
            State::kBody);
  EXPECT_GT(framing.length(), kMaxBodyBytes);
}

}  // namespace
}  // namespace attune::server
