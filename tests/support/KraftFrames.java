import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.LeaderChangeMessageJsonConverter;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.raft.internals.BatchBuilder;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** Writes batches of the metadata log by Kafka's own classes: JSON from stdin, bytes to stdout. */
public class KraftFrames {
    static final int MOST = 1 << 20;

    public static void main(String[] arguments) throws Exception {
        var out = Channels.newChannel(System.out);
        for (JsonNode batch : new ObjectMapper().readTree(System.in)) {
            out.write(encoded(batch).buffer());
        }
    }

    static MemoryRecords encoded(JsonNode batch) {
        long base = batch.get("base").asLong(), time = batch.get("time_ms").asLong();
        int epoch = batch.get("epoch").asInt();
        ByteBuffer buffer = ByteBuffer.allocate(MOST);
        JsonNode records = batch.get("records");
        if (batch.get("is_control").asBoolean()) {
            JsonNode data = records.get(0).get("data");
            var message = LeaderChangeMessageJsonConverter.read(data, (short) data.get("version").asInt());
            return MemoryRecords.withLeaderChangeMessage(base, time, epoch, buffer, message);
        }
        var builder = new BatchBuilder<ApiMessageAndVersion>(
            buffer, new MetadataRecordSerde(), Compression.NONE, base, time, epoch, MOST);
        for (JsonNode record : records) {
            short version = (short) record.get("version").asInt();
            var message = MetadataJsonConverters.readJson(
                record.get("data"), (short) record.get("key").asInt(), version);
            builder.appendRecord(
                new ApiMessageAndVersion(message, version), new ObjectSerializationCache());
        }
        return builder.build();
    }
}
