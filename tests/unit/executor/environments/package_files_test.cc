#include "executor/environments/package_files.h"

#include <gmock/gmock.h>

#include <string>

#include "tests/unit/executor/harness.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;

using gang::WriteFile;

class PackageFilesTest : public testing::Test {
 protected:
  PackageFilesTest() {
    fs::create_directories(root() / "requirements");
    fs::create_directories(root() / "wheels");
    WriteFile(folder_.path() / "outside.txt", "numpy\n");
  }

  fs::path root() const { return folder_.path() / "code"; }

  Result<PackageFiles> Read(const std::string& file = "requirements.txt",
                            const std::string& wheels = "") const {
    return ReadPackageFiles({.python = root() / file,
                             .wheels = wheels.empty() ? fs::path() : root() / wheels,
                             .root = root()});
  }
  std::string Digest(const std::string& file = "requirements.txt",
                     const std::string& wheels = "") const {
    const Result<PackageFiles> read = Read(file, wheels);
    EXPECT_TRUE(read.ok()) << read.error().message;
    return read.ok() ? read->digest : "";
  }
  ErrorCode Refused(const std::string& text, const std::string& file = "requirements.txt") const {
    WriteFile(root() / file, text);
    const Result<PackageFiles> read = Read(file);
    return read.ok() ? ErrorCode::kInternal : read.error().code;
  }
  bool IsAccepted(const std::string& text, const std::string& file = "requirements.txt") const {
    WriteFile(root() / file, text);
    return Read(file).ok();
  }

  gang::TempDir folder_;
};

TEST_F(PackageFilesTest, DigestFollowsReferences) {
  WriteFile(root() / "requirements.txt",
            "-r requirements/base.txt  # a comment\n--constraint=limits.txt\nnumpy\n");
  WriteFile(root() / "requirements/base.txt", "-r ../requirements.txt\nscipy\n");
  WriteFile(root() / "limits.txt", "numpy<2\n");
  const std::string before = Digest();
  EXPECT_EQ(Digest(), before);
  WriteFile(root() / "requirements/base.txt", "-r ../requirements.txt\nscipy==1\n");
  const std::string changed = Digest();
  EXPECT_NE(changed, before);
  WriteFile(root() / "limits.txt", "numpy<3\n");
  EXPECT_NE(Digest(), changed);
}

TEST_F(PackageFilesTest, DigestDoesNotDependOnTheFolder) {
  WriteFile(root() / "requirements.txt", "numpy\n");
  const std::string before = Digest();
  fs::create_directories(folder_.path() / "other");
  WriteFile(folder_.path() / "other/requirements.txt", "numpy\n");
  const auto other = ReadPackageFiles({.python = folder_.path() / "other/requirements.txt"});
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other->digest, before);
}

TEST_F(PackageFilesTest, DigestFollowsWheels) {
  WriteFile(root() / "requirements.txt", "tiny\n");
  const std::string none = Digest("requirements.txt", "wheels");
  WriteFile(root() / "wheels/tiny-1-py3-none-any.whl", "aaaa");
  const std::string first = Digest("requirements.txt", "wheels");
  EXPECT_NE(first, none);
  WriteFile(root() / "wheels/tiny-1-py3-none-any.whl", "aaab");
  EXPECT_NE(Digest("requirements.txt", "wheels"), first);
  WriteFile(root() / "wheels/README", "not an archive");
  WriteFile(root() / "wheels/tiny-1-py3-none-any.whl", "aaaa");
  EXPECT_EQ(Digest("requirements.txt", "wheels"), first);
}

TEST_F(PackageFilesTest, DigestFollowsSettingsOfUv) {
  WriteFile(root() / "requirements.txt", "numpy\n");
  const std::string before = Digest();
  WriteFile(root() / "uv.toml", "index-url = \"https://example.org\"\n");
  EXPECT_NE(Digest(), before);
}

TEST_F(PackageFilesTest, AcceptsRequirementsThatHostsCanRepeat) {
  EXPECT_TRUE(
      IsAccepted("# -e .\n"
                 "--index-url https://example.org/simple\n"
                 "-f https://example.org/wheels\n"
                 "-f wheels\n"
                 "numpy==1.26 ; sys_platform != 'a/b'\n"
                 "torch @ https://example.org/torch-2.0-py3-none-any.whl#sha256=12\n"
                 "tool @ git+https://example.org/tool@v1\n"
                 "six==1.16.0 \\\n"
                 "  --hash=sha256:12/34\n"));
}

TEST_F(PackageFilesTest, RefusesPackagesInLocalFolders) {
  for (const char* line : {"-e .", "-e.", "--editable=lib", ".", "./lib", "lib/",
                           "lib[extra] @ ../lib", "/opt/lib", "~/lib", "tiny-1-py3-none-any.whl",
                           "tiny @ file:///opt/tiny", "git+file:///opt/tiny", "\\\n./lib"})
    EXPECT_EQ(Refused(line), ErrorCode::kInvalid) << line;
}

TEST_F(PackageFilesTest, RefusesPathsThatLeaveTheCode) {
  EXPECT_EQ(Refused("-r ../outside.txt"), ErrorCode::kInvalid);
  EXPECT_EQ(Refused("-c ../outside.txt"), ErrorCode::kInvalid);
  EXPECT_EQ(Refused("-f .."), ErrorCode::kInvalid);
  fs::create_symlink("../outside.txt", root() / "link.txt");
  EXPECT_EQ(Refused("-r link.txt"), ErrorCode::kInvalid);
  WriteFile(root() / "requirements.txt", "numpy\n");
  EXPECT_FALSE(Read("../outside.txt").ok());
}

TEST_F(PackageFilesTest, WheelsMayBeAFolderOfTheHost) {
  WriteFile(root() / "requirements.txt", "tiny\n");
  fs::create_directories(folder_.path() / "shared");
  WriteFile(folder_.path() / "shared/tiny-1-py3-none-any.whl", "aaaa");
  EXPECT_NE(Digest("requirements.txt", "../shared"), Digest("requirements.txt", "wheels"));
  fs::create_directory_symlink("../shared", root() / "link");
  EXPECT_FALSE(Read("requirements.txt", "link").ok());
  EXPECT_FALSE(Read("requirements.txt", "missing").ok());
}

TEST_F(PackageFilesTest, RefusesRequirementsAtAnAddress) {
  EXPECT_EQ(Refused("-r https://example.org/requirements.txt"), ErrorCode::kInvalid);
}

TEST_F(PackageFilesTest, RefusesFilesThatAreMissingOrTooLarge) {
  EXPECT_FALSE(Read().ok());
  EXPECT_EQ(Refused("-r missing.txt"), ErrorCode::kInvalid);
  WriteFile(root() / "requirements.txt", std::string(kPackageFileBytesMax, '#'));
  EXPECT_TRUE(Read().ok());
  WriteFile(root() / "requirements.txt", std::string(kPackageFileBytesMax + 1, '#'));
  EXPECT_FALSE(Read().ok());
}

TEST_F(PackageFilesTest, RefusesTooManyFilesOfRequirements) {
  const auto write = [&](size_t files) {
    for (size_t i = 0; i < files; ++i)
      WriteFile(root() / ("r" + std::to_string(i)),
                i + 1 == files ? "" : "-r r" + std::to_string(i + 1));
  };
  write(kPackageFilesMax);
  EXPECT_TRUE(Read("r0").ok());
  write(kPackageFilesMax + 1);
  EXPECT_FALSE(Read("r0").ok());
}

TEST_F(PackageFilesTest, RefusesRelativePaths) {
  EXPECT_FALSE(ReadPackageFiles({.python = "requirements.txt"}).ok());
}

TEST_F(PackageFilesTest, ALockNeedsItsProject) {
  WriteFile(root() / "uv.lock", "version = 1\n");
  EXPECT_FALSE(Read("uv.lock").ok());
  WriteFile(root() / "pyproject.toml", "[project]\n");
  const Result<PackageFiles> read = Read("uv.lock");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->kind, PackageFilesKind::kLock);
  WriteFile(root() / "pyproject.toml", "[project]\nname = 'a'\n");
  EXPECT_NE(Digest("uv.lock"), read->digest);
}

TEST_F(PackageFilesTest, ALockMayContainOnlyTheProjectAsALocalPackage) {
  WriteFile(root() / "pyproject.toml", "[project]\n");
  EXPECT_TRUE(IsAccepted("source = { virtual = \".\" }\n", "uv.lock"));
  EXPECT_TRUE(IsAccepted("source = { registry = \"https://pypi.org/simple\" }\n", "uv.lock"));
  for (const char* source : {"editable = \"packages/a\"", "directory = \"../a\"",
                             "path = \"a-1-py3-none-any.whl\"", "virtual = \"packages/a\""})
    EXPECT_EQ(Refused("source = { " + std::string(source) + " }\n", "uv.lock"), ErrorCode::kInvalid)
        << source;
}

TEST_F(PackageFilesTest, AProjectMayNotNameLocalSources) {
  EXPECT_TRUE(IsAccepted("[tool.other]\npath = 'src'\n", "pyproject.toml"));
  EXPECT_FALSE(Read("pyproject.toml")->names_sources);
  EXPECT_TRUE(IsAccepted("[tool.uv.sources]\ntorch = { index = \"cu121\" }\n", "pyproject.toml"));
  EXPECT_TRUE(Read("pyproject.toml")->names_sources);
  for (const char* text :
       {"[tool.uv.sources]\na = { path = \"../a\" }\n", "[tool.uv.sources.a]\nworkspace = true\n",
        "[project]\ndependencies = [\"a @ file:///opt/a\"]\n"})
    EXPECT_EQ(Refused(text, "pyproject.toml"), ErrorCode::kInvalid) << text;
}

}  // namespace
}  // namespace attune::agent
