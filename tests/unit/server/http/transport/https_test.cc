#include <signal.h>

#include <fstream>

#include "base/result.h"
#include "server/http/http_server.h"
#include "tests/unit/server/http/http_fixture.h"
#include "tests/unit/server/http/raw_client.h"
#include "tls/certificate.h"

namespace attune::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kBearer = "Bearer " + std::string(kToken);

// Replaces the file by renaming, like programs that renew certificates.
void Write(const std::filesystem::path& file, const std::string& text) {
  const std::filesystem::path whole = file.string() + ".new";
  std::ofstream(whole) << text;
  std::filesystem::rename(whole, file);
}

// A second server that also uses HTTPS, with a certificate for "attune".
class HttpsTest : public HttpFixture {
 protected:
  HttpsTest() {
    signal(SIGPIPE, SIG_IGN);
    Certify();
    secure_ = Start(Options()).value();
  }

  static Result<std::unique_ptr<HttpServer>> Start(HttpServer::Options options) {
    return HttpServer::Start(std::move(options));
  }

  void Certify() {
    const tls::Identity identity = tls::MakeIdentity().value();
    Write(certificate_, identity.certificate);
    Write(key_, identity.key);
  }

  HttpServer::Options Options() {
    HttpServer::Options options = ServerOptions();
    options.limits.head = std::chrono::milliseconds(200);
    options.https = {.host = "127.0.0.1", .port = 0, .certificate = certificate_, .key = key_};
    return options;
  }

  int Port() const {
    const std::string url = secure_->https_url();
    return std::stoi(url.substr(url.rfind(':') + 1));
  }

  std::unique_ptr<httplib::SSLClient> Client() const {
    auto client = std::make_unique<httplib::SSLClient>("127.0.0.1", Port());
    client->enable_server_certificate_verification(false);
    client->set_default_headers({{"Authorization", kBearer}});
    client->set_keep_alive(true);
    return client;
  }

  // Whether a new connection gets the certificate in this file.
  bool IsCertificateOfNewConnections(const std::filesystem::path& file) const {
    httplib::SSLClient client("attune", Port());
    client.set_hostname_addr_map({{"attune", "127.0.0.1"}});
    client.set_ca_cert_path(file.c_str());
    client.enable_server_certificate_verification(true);
    return static_cast<bool>(client.Get("/livez"));
  }

  const std::filesystem::path certificate_ = folder_ / "cert.pem";
  const std::filesystem::path key_ = folder_ / "key.pem";
  std::unique_ptr<HttpServer> secure_;
};

TEST_F(HttpsTest, AnswersLikePlainHttpOverOneConnection) {
  const auto client = Client();
  for (const char* path : {"/api/v1/sweeps", "/api/v1/sweeps/s1/trials", "/", "/nothing"}) {
    const auto secure = client->Get(path);
    const auto clear = client_->Get(path);
    ASSERT_TRUE(secure && clear) << path;
    EXPECT_EQ(secure->status, clear->status) << path;
    EXPECT_EQ(secure->body, clear->body) << path;
  }
}

TEST_F(HttpsTest, CarriesLongBodiesBothWays) {
  // many TLS records, and more than a socket buffers
  static const std::string long_text(6 << 20, 'a');
  const std::array<Asset, 1> assets = {Asset{"/long", "text/plain", "e", long_text, false}};
  HttpServer::Options options = Options();
  options.assets = assets;
  secure_ = Start(std::move(options)).value();
  const auto client = Client();
  const auto got = client->Get("/long");
  ASSERT_TRUE(got);
  EXPECT_EQ(got->body, long_text);
  const std::string comment = "# " + std::string(900'000, 'b');
  const auto told = client->Post("/api/v1/sweeps:validate", comment, "application/yaml");
  ASSERT_TRUE(told);
  EXPECT_EQ(told->status, 400) << told->body;  // the file has only a comment
}

TEST_F(HttpsTest, StreamsEvents) {
  std::string text;
  Client()->Get("/api/v1/events?after=0", [&](const char* data, size_t size) {
    text.append(data, size);
    return text.find("id: 5\n") == std::string::npos;
  });
  EXPECT_THAT(text, HasSubstr("id: 5\n"));
}

TEST_F(HttpsTest, ItsCookieIsNotSentWithoutTls) {
  const auto secure = Client()->Get("/login?token=" + std::string(kToken));
  ASSERT_TRUE(secure);
  EXPECT_THAT(secure->get_header_value("Set-Cookie"), HasSubstr("; Secure"));
  const auto clear = client_->Get("/login?token=" + std::string(kToken));
  EXPECT_THAT(clear->get_header_value("Set-Cookie"), Not(HasSubstr("; Secure")));
}

TEST_F(HttpsTest, TheNamesOfItsCertificateAreItsOwn) {
  const auto client = Client();
  EXPECT_EQ(client->Get("/livez", {{"Host", "attune"}})->status, 200);
  EXPECT_EQ(client->Get("/livez", {{"Host", "attune.evil.example"}})->status, 403);
  EXPECT_THAT(secure_->https_url(), StartsWith("https://attune:"));
}

TEST_F(HttpsTest, PagesWithoutTlsHaveAnotherOrigin) {
  const auto client = Client();
  const auto from = [&](const char* origin) {
    return client->Get("/livez", {{"Host", "attune"}, {"Origin", origin}})->status;
  };
  EXPECT_EQ(from("https://attune"), 200);
  EXPECT_EQ(from("http://attune"), 403);
}

TEST_F(HttpsTest, AnswersPlainHttpWithAnExplanation) {
  RawClient client(Port());
  client.Send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(client.ReadToEnd(), HasSubstr("HTTPS"));
}

TEST_F(HttpsTest, AnIncompleteHandshakeTimesOut) {
  RawClient silent(Port());
  RawClient stuck(Port());
  stuck.Send(std::string_view("\x16\x03\x01\x02", 4));
  EXPECT_EQ(silent.ReadToEnd(), "");
  EXPECT_EQ(stuck.ReadToEnd(), "");
  EXPECT_EQ(Client()->Get("/livez")->status, 200);
}

TEST_F(HttpsTest, NewConnectionsGetAReplacedCertificate) {
  EXPECT_TRUE(IsCertificateOfNewConnections(certificate_));
  const auto connected = Client();
  EXPECT_EQ(connected->Get("/livez")->status, 200);
  std::filesystem::copy_file(certificate_, folder_ / "before.pem");
  Write(certificate_, "half of one");
  EXPECT_TRUE(IsCertificateOfNewConnections(folder_ /
                                            "before.pem"));  // the earlier certificate stays in use
  Certify();
  EXPECT_TRUE(IsCertificateOfNewConnections(certificate_));
  EXPECT_FALSE(IsCertificateOfNewConnections(folder_ / "before.pem"));
  EXPECT_EQ(connected->Get("/livez")->status, 200);
}

TEST_F(HttpsTest, NamesAnInvalidFile) {
  const auto wrong = [this](const std::filesystem::path& certificate,
                            const std::filesystem::path& key) {
    HttpServer::Options options = Options();
    options.https->certificate = certificate;
    options.https->key = key;
    const auto started = Start(std::move(options));
    EXPECT_FALSE(started.ok());
    if (started.ok()) return std::string();
    EXPECT_EQ(started.error().code, ErrorCode::kInvalid);
    return started.error().message;
  };
  EXPECT_THAT(wrong(folder_ / "none", key_), HasSubstr("none: "));
  EXPECT_THAT(wrong(key_, key_), HasSubstr("--tls-cert"));
  EXPECT_THAT(wrong(key_, key_), HasSubstr("PEM certificate"));
  EXPECT_THAT(wrong(certificate_, certificate_), HasSubstr("private key"));
  Write(folder_ / "other", tls::MakeIdentity()->key);
  EXPECT_THAT(wrong(certificate_, folder_ / "other"), HasSubstr("certificate"));
}

}  // namespace
}  // namespace attune::server
