package tare.ycsb;

import com.mongodb.ConnectionString;
import com.mongodb.MongoClientSettings;
import com.mongodb.MongoException;
import com.mongodb.ReadPreference;
import com.mongodb.WriteConcern;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoCursor;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.Filters;
import com.mongodb.client.model.Projections;
import com.mongodb.client.model.ReplaceOptions;
import com.mongodb.client.model.Sorts;
import com.mongodb.client.model.Updates;
import com.mongodb.client.result.DeleteResult;
import com.mongodb.client.result.UpdateResult;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.Vector;
import java.util.function.Supplier;
import org.bson.Document;
import org.bson.conversions.Bson;
import org.bson.types.Binary;
import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.Status;

/**
 * MongoDB by its synchronous driver; one client, and so one pool of connections, for all threads, which ends with the JVM.
 *
 * <p>Properties: {@code mongodb.url} (default {@code mongodb://localhost:27017/ycsb?w=1}; write concern and read
 * preference may stand in it), {@code mongodb.writeConcern} and {@code mongodb.readPreference} (which come before what stands
 * there), {@code mongodb.upsert} (false), {@code mongodb.maxconnections} (the driver's 100).
 */
public final class MongoDbBinding extends DB {
  private static final String DEFAULT_URL = "mongodb://localhost:27017/ycsb?w=1";
  private static MongoClient client;

  private MongoDatabase database;
  private boolean upsert;

  @Override
  public void setProperties(Properties properties) {
    super.setProperties(properties);
    upsert = Boolean.parseBoolean(properties.getProperty("mongodb.upsert", "false"));
    String url = properties.getProperty("mongodb.url", DEFAULT_URL);
    ConnectionString target = new ConnectionString(url);
    synchronized (MongoDbBinding.class) {
      if (client == null) {
        client = MongoClients.create(settings(target, properties));
      }
    }
    database = client.getDatabase(target.getDatabase() == null ? "ycsb" : target.getDatabase());
    database.runCommand(new Document("ping", 1));
  }

  private static MongoClientSettings settings(ConnectionString target, Properties properties) {
    MongoClientSettings.Builder settings = MongoClientSettings.builder().applyConnectionString(target);
    String concern = properties.getProperty("mongodb.writeConcern");
    if (concern != null) {
      settings.writeConcern(writeConcern(concern));
    }
    String preference = properties.getProperty("mongodb.readPreference");
    if (preference != null) {
      settings.readPreference(ReadPreference.valueOf(preference.replace("_", "")));
    }
    String most = properties.getProperty("mongodb.maxconnections");
    if (most != null) {
      settings.applyToConnectionPoolSettings(pool -> pool.maxSize(Integer.parseInt(most)));
    }
    return settings.build();
  }

  /** By the names that YCSB's own binding has for them. */
  private static WriteConcern writeConcern(String name) {
    return switch (name) {
      case "errors_ignored", "unacknowledged" -> WriteConcern.UNACKNOWLEDGED;
      case "acknowledged" -> WriteConcern.W1;
      case "journaled" -> WriteConcern.JOURNALED;
      case "replica_acknowledged" -> WriteConcern.W2;
      case "majority" -> WriteConcern.MAJORITY;
      default -> throw new IllegalArgumentException("there is no write concern '" + name + "'");
    };
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    return carryOut(() -> {
      Document found = collection(table).find(Filters.eq(key)).projection(projection(fields)).first();
      if (found == null) {
        return Status.NOT_FOUND;
      }
      take(found, result);
      return Status.OK;
    });
  }

  @Override
  public Status scan(String table, String startKey, int count, Set<String> fields,
                     Vector<HashMap<String, ByteIterator>> result) {
    return carryOut(() -> {
      try (MongoCursor<Document> cursor = collection(table).find(Filters.gte("_id", startKey))
          .sort(Sorts.ascending("_id")).limit(count).projection(projection(fields)).iterator()) {
        while (cursor.hasNext()) {
          HashMap<String, ByteIterator> values = new HashMap<>();
          take(cursor.next(), values);
          result.add(values);
        }
      }
      return result.isEmpty() ? Status.NOT_FOUND : Status.OK;
    });
  }

  /** Of an update that is not acknowledged nobody can tell whether its record was there. */
  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    return carryOut(() -> {
      List<Bson> sets = new ArrayList<>();
      values.forEach((field, value) -> sets.add(Updates.set(field, value.toArray())));
      UpdateResult done = collection(table).updateOne(Filters.eq(key), Updates.combine(sets));
      return done.wasAcknowledged() && done.getMatchedCount() == 0 ? Status.NOT_FOUND : Status.OK;
    });
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    return carryOut(() -> {
      Document document = new Document("_id", key);
      values.forEach((field, value) -> document.put(field, value.toArray()));
      if (upsert) {
        collection(table).replaceOne(Filters.eq(key), document, new ReplaceOptions().upsert(true));
      } else {
        collection(table).insertOne(document);
      }
      return Status.OK;
    });
  }

  @Override
  public Status delete(String table, String key) {
    return carryOut(() -> {
      DeleteResult done = collection(table).deleteOne(Filters.eq(key));
      return done.wasAcknowledged() && done.getDeletedCount() == 0 ? Status.NOT_FOUND : Status.OK;
    });
  }

  private MongoCollection<Document> collection(String table) {
    return database.getCollection(table);
  }

  private static Bson projection(Set<String> fields) {
    return fields == null ? null : Projections.include(List.copyOf(fields));
  }

  private static void take(Document document, Map<String, ByteIterator> values) {
    document.forEach((field, value) -> {
      if (value instanceof Binary binary) {
        values.put(field, new ByteArrayByteIterator(binary.getData()));
      }
    });
  }

  private static Status carryOut(Supplier<Status> work) {
    try {
      return work.get();
    } catch (MongoException e) {
      Complaints.say(e);
      return Status.ERROR;
    }
  }
}
