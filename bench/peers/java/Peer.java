import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import org.apache.kafka.clients.Metadata;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.internals.ClusterResourceListeners;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.utils.AppInfoParser;
import org.apache.kafka.common.utils.LogContext;

/**
 * Peer speed|memory DIR ROUNDS SECONDS WARM: times Kafka's own client from inside. DIR is a
 * workload (bench/c/workload.h). Each thing runs for WARM seconds before it is timed, for the JIT.
 *
 * <ul>
 *   <li>cold: MetadataResponse.parse + Metadata.update into a new Metadata; same: the same again.
 *       Time is on the wall, since the collector works in another thread. It runs before each.
 *   <li>prepared, hashed, fresh: Cluster.leaderFor with a TopicPartition that is kept; with a new
 *       one over a String whose hash is known; over a String never hashed. The thread's time.
 *   <li>memory: the growth of the used heap, after collections.
 * </ul>
 */
public final class Peer {
  private static final short VERSION = 12;
  private static final int HOT = 1024;
  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

  private static final Map<String, List<Double>> samples = new LinkedHashMap<>();

  private final Path dir;
  private final int rounds;
  private final double seconds;
  private final double warm;
  private final String[] names;
  private final byte[] all;
  private final double partitions;

  private Peer(String[] args) throws IOException {
    dir = Path.of(args[1]);
    rounds = Integer.parseInt(args[2]);
    seconds = Double.parseDouble(args[3]);
    warm = Double.parseDouble(args[4]);
    names = Files.readAllLines(dir.resolve("names")).toArray(new String[0]);
    all = Files.readAllBytes(dir.resolve("all-12"));
    String[] about = Files.readString(dir.resolve("about")).trim().split(" ");
    partitions = Double.parseDouble(about[0]) * Double.parseDouble(about[1]);
  }

  private static void add(String key, double sample) {
    samples.computeIfAbsent(key, k -> new ArrayList<>()).add(sample);
  }

  private static double cpu() {
    return THREADS.getCurrentThreadCpuTime();
  }

  /** Returns whether to run a round: at least one, at most `rounds`, none that begins too late. */
  private boolean more(int done, long begin) {
    return done == 0 || (done < rounds && System.nanoTime() - begin < seconds * 1e9);
  }

  // ------------------------------------------------------------------ answers

  private static Metadata empty() {
    return new Metadata(
        100, 1000, Long.MAX_VALUE / 4, new LogContext(), new ClusterResourceListeners());
  }

  private static void take(Metadata metadata, byte[] body) {
    MetadataResponse response =
        MetadataResponse.parse(new ByteBufferAccessor(ByteBuffer.wrap(body)), VERSION);
    metadata.updateWithCurrentRequestVersion(response, false, System.currentTimeMillis());
  }

  /** Runs until the JIT has had its seconds and three passes were no faster. On a machine that is
   *  too busy for that, it runs for five times the seconds. */
  private void warmUp() {
    long begin = System.nanoTime();
    double best = Double.MAX_VALUE;
    double elapsed = 0;
    for (int steady = 0; (steady < 3 || elapsed < warm) && elapsed < 5 * warm; ) {
      Metadata metadata = empty();
      System.gc();
      long start = System.nanoTime();
      take(metadata, all);
      take(metadata, all);
      double took = System.nanoTime() - start;
      steady = took < 0.9 * best ? 0 : steady + 1;
      best = Math.min(best, took);
      elapsed = (System.nanoTime() - begin) / 1e9;
    }
  }

  private void answers() {
    warmUp();
    long begin = System.nanoTime();
    for (int done = 0; more(done, begin); done++) {
      Metadata metadata = empty();
      for (String figure : new String[] {"cold", "same"}) {
        System.gc();
        long start = System.nanoTime();
        take(metadata, all);
        add(figure + ":java", (System.nanoTime() - start) / partitions);
      }
    }
  }

  /** Returns the bytes in use right after a full collection, without buffers of threads. */
  private static long used() {
    System.gc();
    System.gc();
    long used = 0;
    for (MemoryPoolMXBean pool : ManagementFactory.getMemoryPoolMXBeans()) {
      if (pool.getType() == MemoryType.HEAP) {
        used += pool.getCollectionUsage().getUsed();
      }
    }
    return used;
  }

  private void memory() throws IOException {
    Metadata kept = empty();
    take(kept, Files.readAllBytes(dir.resolve("one-12")));
    long before = used();
    kept = empty();
    take(kept, all);
    add("memory:java", (used() - before) / partitions);
    if (kept.fetch().topics().size() != names.length) {
      throw new IllegalStateException("topics are missing");
    }
  }

  // ------------------------------------------------------------------ lookups

  private static final class Queries {
    final String[] topics;
    final int[] partitions;

    Queries(Path file, String[] names) throws IOException {
      ByteBuffer b = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
      topics = new String[b.remaining() / 8];
      partitions = new int[topics.length];
      for (int i = 0; i < topics.length; i++) {
        topics[i] = names[b.getInt()];
        partitions[i] = b.getInt();
      }
    }

    private Queries(String[] topics, int[] partitions) {
      this.topics = topics;
      this.partitions = partitions;
    }

    /** Returns `count` queries from `from` on, `times` times. */
    Queries part(int from, int count, int times) {
      Queries out = new Queries(new String[count * times], new int[count * times]);
      for (int i = 0; i < count * times; i++) {
        out.topics[i] = topics[from + i % count];
        out.partitions[i] = partitions[from + i % count];
      }
      return out;
    }

    /** Returns the same queries in new Strings, which were never hashed. */
    Queries fresh() {
      Queries out = new Queries(new String[topics.length], partitions);
      for (int i = 0; i < topics.length; i++) {
        byte[] bytes = topics[i].getBytes(StandardCharsets.UTF_8);
        out.topics[i] = new String(bytes, StandardCharsets.UTF_8);
      }
      return out;
    }

    TopicPartition[] prepared() {
      TopicPartition[] out = new TopicPartition[topics.length];
      for (int i = 0; i < out.length; i++) {
        out[i] = new TopicPartition(topics[i], partitions[i]);
        out[i].hashCode(); // a String keeps its hash
      }
      return out;
    }
  }

  private static long ask(Cluster cluster, String[] topics, int[] partitions) {
    long sum = 0;
    for (int i = 0; i < topics.length; i++) {
      sum += cluster.leaderFor(new TopicPartition(topics[i], partitions[i])).id();
    }
    return sum;
  }

  private static long askPrepared(Cluster cluster, TopicPartition[] prepared) {
    long sum = 0;
    for (TopicPartition partition : prepared) {
      sum += cluster.leaderFor(partition).id();
    }
    return sum;
  }

  private static long timed(Cluster cluster, Queries queries, String figure, boolean keep) {
    int n = queries.topics.length;
    Queries fresh = queries.fresh();
    TopicPartition[] prepared = queries.prepared(); // hashes the Strings, too
    double begin = cpu();
    long sum = ask(cluster, queries.topics, queries.partitions);
    double hashed = cpu() - begin;
    begin = cpu();
    long same = ask(cluster, fresh.topics, fresh.partitions);
    double unhashed = cpu() - begin;
    begin = cpu();
    long again = askPrepared(cluster, prepared);
    double known = cpu() - begin;
    if (sum != same || sum != again) {
      throw new IllegalStateException("the sums differ");
    }
    if (keep) {
      add(figure + ":hashed", hashed / n);
      add(figure + ":fresh", unhashed / n);
      add(figure + ":prepared", known / n);
    }
    return sum;
  }

  private long lookups() throws IOException {
    Metadata metadata = empty();
    take(metadata, all);
    Cluster cluster = metadata.fetch();
    Queries random = new Queries(dir.resolve("random"), names);
    Queries hot = new Queries(dir.resolve("hot"), names);
    int times = Math.max(1, random.topics.length / HOT);
    long sum = 0;
    long begin = System.nanoTime();
    for (int done = 0; done < 2 || System.nanoTime() - begin < warm * 1e9; done++) {
      sum = timed(cluster, random, "random", false);
      timed(cluster, hot.part(0, HOT, times), "hot", false);
    }
    begin = System.nanoTime();
    for (int done = 0; more(done, begin); done++) {
      if (timed(cluster, random, "random", true) != sum) {
        throw new IllegalStateException("another sum");
      }
      int from = done * HOT % hot.topics.length;
      timed(cluster, hot.part(from, HOT, times), "hot", true);
    }
    return sum;
  }

  public static void main(String[] args) throws Exception {
    Peer peer = new Peer(args);
    StringJoiner out = new StringJoiner(", ", "{", "}");
    out.add("\"version\": \"" + AppInfoParser.getVersion() + "\"");
    out.add("\"runtime\": \"" + System.getProperty("java.version") + "\"");
    if (args[0].equals("memory")) {
      peer.memory();
    } else {
      peer.answers();
      out.add("\"sum\": " + peer.lookups());
    }
    samples.forEach((key, values) -> out.add("\"" + key + "\": " + values));
    System.out.println(out);
  }
}
