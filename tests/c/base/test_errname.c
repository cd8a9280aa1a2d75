#include "rdmeta.h"

#include "support/testing.h"

TEST(test_every_error_has_a_name_of_its_own) {
        enum { FIRST = -129, LAST = 133 };
        const char *unnamed = rdmeta_err_name(INT32_MAX);
        int a, b;

        for (a = FIRST; a <= LAST; a++) {
                const char *name = rdmeta_err_name(a);
                const int named  = a >= -1 || (a <= -100 && a >= -106) ||
                                  a <= -120;

                CHECK(name && *name);
                CHECK((strcmp(name, unnamed) != 0) == named);
                for (b = FIRST; b < a && named; b++)
                        CHECK(strcmp(name, rdmeta_err_name(b)) != 0);
        }
}

TEST(test_names_stand_at_their_codes) {
        CHECK(!strcmp(rdmeta_err_name(-1), "UNKNOWN_SERVER_ERROR"));
        CHECK(!strcmp(rdmeta_err_name(0), "NONE"));
        CHECK(!strcmp(rdmeta_err_name(3), "UNKNOWN_TOPIC_OR_PARTITION"));
        CHECK(!strcmp(rdmeta_err_name(29), "TOPIC_AUTHORIZATION_FAILED"));
        CHECK(!strcmp(rdmeta_err_name(72), "LISTENER_NOT_FOUND"));
        CHECK(!strcmp(rdmeta_err_name(100), "UNKNOWN_TOPIC_ID"));
        CHECK(!strcmp(rdmeta_err_name(129), "REBOOTSTRAP_REQUIRED"));
        CHECK(!strcmp(rdmeta_err_name(133), "SHARE_SESSION_LIMIT_REACHED"));
        CHECK(!strcmp(rdmeta_err_name(RDMETA_STALE), "RDMETA_STALE"));
        CHECK(!strcmp(rdmeta_err_name(RDMETA_ERR_RESPONSE),
                      "RDMETA_ERR_RESPONSE"));
        CHECK(!strcmp(rdmeta_err_name(RDMETA_ERR_IO), "RDMETA_ERR_IO"));
}

TEST(test_a_number_that_is_no_error_has_a_name_too) {
        static const rdmeta_err_t numbers[] = {-2, -99, -107, -119, -130, 134,
                                               INT32_MIN, INT32_MAX};
        size_t i;

        for (i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
                CHECK(!strcmp(rdmeta_err_name(numbers[i]), "UNNAMED_ERROR"));
}

TEST(test_the_library_says_the_abi_version_of_its_header) {
        CHECK(rdmeta_abi_version() == RDMETA_ABI_VERSION);
}

TEST_MAIN()
