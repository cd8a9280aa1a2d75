/*
 * Prints murmur2.txt: what the Java client makes of 500 keys. Each line is
 * the hash (signed) and the partition of COUNTS many.
 *
 *     for jar in org.apache.kafka:kafka-clients:4.1.0 org.slf4j:slf4j-api:1.7.36; do
 *         mvn -q org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
 *             -Dartifact=$jar -DoutputDirectory=build/java
 *     done
 *     java -cp 'build/java/*' tests/golden/Murmur2Golden.java > tests/golden/murmur2.txt
 *
 * Key i is the first bytes of SHA-256("i/0") SHA-256("i/1") ...: i % 65 of them,
 * and for the last ten 1000, 2000 ... 10000. tests/core/test_partition_for.py
 * makes the same ones; the line at the end is the SHA-256 of all keys, one after another.
 */
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.HexFormat;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.utils.Utils;

public class Murmur2Golden {
    static final int KEYS = 500;
    static final int[] COUNTS = {3, 12, 1000};

    static byte[] key(int i) throws Exception {
        int length = i < KEYS - 10 ? i % 65 : 1000 * (i - (KEYS - 11));
        byte[] key = new byte[length];
        for (int at = 0; at < length; at += 32) {
            byte[] name = (i + "/" + at / 32).getBytes(StandardCharsets.US_ASCII);
            byte[] block = MessageDigest.getInstance("SHA-256").digest(name);
            System.arraycopy(block, 0, key, at, Math.min(32, length - at));
        }
        return key;
    }

    public static void main(String[] args) throws Exception {
        MessageDigest all = MessageDigest.getInstance("SHA-256");
        StringBuilder out = new StringBuilder();
        for (int i = 0; i < KEYS; i++) {
            byte[] key = key(i);
            all.update(key);
            out.append(Utils.murmur2(key));
            for (int count : COUNTS)
                out.append(' ').append(BuiltInPartitioner.partitionForKey(key, count));
            out.append('\n');
        }
        System.out.print(out.append(HexFormat.of().formatHex(all.digest())).append('\n'));
    }
}
