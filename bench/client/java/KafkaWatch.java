import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.time.Instant;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.Metadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * KafkaWatch idle|busy BOOTSTRAP TOPIC: a producer that reports when it sees another leader, in the
 * protocol of watch.py. An idle one sends one record when it is told to connect; a busy one sends
 * every 10 ms. KafkaWatch storm BOOTSTRAP PREFIX COUNT sends to topics PREFIX0, PREFIX1, ... by
 * turns, all of them once a second, and prints "ready" once each has had a record.
 */
public final class KafkaWatch {
  private static final byte[] VALUE = {'x'};

  private KafkaWatch() {}

  private static KafkaProducer<byte[], byte[]> producer(String bootstrap) {
    Properties settings = new Properties();
    settings.put("bootstrap.servers", bootstrap);
    settings.put("client.id", "java");
    settings.put("max.block.ms", "60000");
    ByteArraySerializer bytes = new ByteArraySerializer();
    return new KafkaProducer<>(settings, bytes, bytes);
  }

  /** Returns the producer's own metadata, which it offers to no application. */
  private static Metadata metadata(KafkaProducer<byte[], byte[]> producer) throws Exception {
    Field field = KafkaProducer.class.getDeclaredField("metadata");
    field.setAccessible(true);
    return (Metadata) field.get(producer);
  }

  private static int leader(Metadata metadata, TopicPartition partition) {
    Node node = metadata.fetch().leaderFor(partition);
    return node == null ? -1 : node.id();
  }

  private static void daemon(Runnable work) {
    Thread thread = new Thread(work);
    thread.setDaemon(true);
    thread.start();
  }

  private static void pause(long millis) {
    try {
      Thread.sleep(millis);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private static void report(Metadata metadata, TopicPartition partition) {
    int last = -1;
    while (true) {
      int found = leader(metadata, partition);
      if (found != -1 && found != last) {
        Instant now = Instant.now();
        System.out.printf("leader %d.%09d %d%n", now.getEpochSecond(), now.getNano(), found);
        last = found;
      }
      pause(1);
    }
  }

  private static void send(KafkaProducer<byte[], byte[]> producer, String topic) {
    while (true) {
      producer.send(new ProducerRecord<>(topic, 0, null, VALUE));
      pause(10);
    }
  }

  private static void storm(KafkaProducer<byte[], byte[]> producer, String prefix, int count)
      throws Exception {
    for (int i = 0; i < count; i++) {
      producer.send(new ProducerRecord<>(prefix + i, 0, null, VALUE));
    }
    producer.flush();
    System.out.println("ready 0");
    while (true) {
      for (int i = 0; i < count; i++) {
        producer.send(new ProducerRecord<>(prefix + i, 0, null, VALUE));
      }
      pause(1000);
    }
  }

  /** Runs until the input ends. */
  public static void main(String[] args) throws Exception {
    KafkaProducer<byte[], byte[]> producer = producer(args[1]);
    if (args[0].equals("storm")) {
      storm(producer, args[2], Integer.parseInt(args[3]));
    }
    TopicPartition partition = new TopicPartition(args[2], 0);
    Metadata metadata = metadata(producer);
    daemon(() -> report(metadata, partition));
    if (args[0].equals("busy")) {
      daemon(() -> send(producer, args[2]));
    }
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    while (lines.readLine() != null) {
      producer.send(new ProducerRecord<>(args[2], 0, null, VALUE)).get(60, TimeUnit.SECONDS);
      System.out.println("ready " + leader(metadata, partition));
    }
    System.exit(0);
  }
}
