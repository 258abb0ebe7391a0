// CSV files of packing instances: parsed strictly, written with offsets.
#include "tools/pipeline/buffers_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace loadline::tools {
namespace {

using ::testing::HasSubstr;

TEST(ReadBuffersCsv, TakesColumnsInAnyOrder) {
  auto buffers =
      ReadBuffersCsv("size,id,upper,lower,note\n16,a,3,1,x\n\n8,b,2,0,\n");
  ASSERT_TRUE(buffers.ok()) << buffers.status();
  ASSERT_EQ(buffers->size(), 2u);
  EXPECT_EQ((*buffers)[0].id, "a");
  EXPECT_EQ((*buffers)[0].lower, 1);
  EXPECT_EQ((*buffers)[0].upper, 3);
  EXPECT_EQ((*buffers)[0].size, 16);
  EXPECT_EQ(WriteBuffersCsv(*buffers, {0, 256}),
            "id,lower,upper,size,offset\na,1,3,16,0\nb,0,2,8,256\n");
}

// Else an id would differ, or be another's, in the file that is written.
TEST(ReadBuffersCsv, LeavesOutSpaceAroundCells) {
  auto buffers = ReadBuffersCsv("size, lower,upper,id ,x\n1, 2 ,3,\fa,\n");
  ASSERT_TRUE(buffers.ok()) << buffers.status();
  EXPECT_EQ((*buffers)[0].id, "a");
  EXPECT_EQ((*buffers)[0].lower, 2);
  EXPECT_EQ(ReadBuffersCsv("size,lower,upper,id,x\n1,2,3,\fa,\n1,2,3,a,\n")
                .status()
                .message(),
            "line 3: id 'a' again");
}

TEST(ReadBuffersCsv, NamesTheLineOfWhatIsWrong) {
  const std::pair<const char*, const char*> kCases[] = {
      {"", "line 1: the file is empty"},
      {"id,lower,upper\n", "line 1: no column 'size'"},
      {"id,lower,upper,size\na,1,2\n", "line 2: expected 4 cells"},
      {"id,lower,upper,size\na,1,2,x\n", "line 2: size 'x'"},
      {"id,lower,upper,size\na,2,2,1\n", "line 2: upper"},
      {"id,lower,upper,size\na,1,2,-1\n", "line 2: size must"},
      {"id,lower,upper,size\na,1,2,1\na,1,2,1\n", "line 3: id 'a' again"},
      {"id,lower,upper,size\na,1,2,99999999999999999999\n", "line 2: size"},
  };
  for (const auto& [text, message] : kCases) {
    EXPECT_THAT(std::string(ReadBuffersCsv(text).status().message()),
                HasSubstr(message));
  }
}

}  // namespace
}  // namespace loadline::tools
