package tare.ycsb;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.Vector;
import java.util.function.Supplier;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.exceptions.JedisException;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/**
 * Redis: a record is a hash, and a sorted set has all keys for scans; one connection a thread.
 *
 * <p>Properties: {@code redis.host} (localhost), {@code redis.port} (6379), {@code redis.password},
 * {@code redis.timeout} (milliseconds).
 */
public final class RedisBinding extends DB {
  private static final String INDEX = "_indices";

  private Jedis redis;

  @Override
  public void setProperties(Properties properties) {
    super.setProperties(properties);
    HostAndPort place = new HostAndPort(properties.getProperty("redis.host", "localhost"),
        Integer.parseInt(properties.getProperty("redis.port", "6379")));
    DefaultJedisClientConfig.Builder config = DefaultJedisClientConfig.builder();
    String timeout = properties.getProperty("redis.timeout");
    if (timeout != null) {
      config.timeoutMillis(Integer.parseInt(timeout));
    }
    String password = properties.getProperty("redis.password");
    if (password != null && !password.isEmpty()) {
      config.password(password);
    }
    redis = new Jedis(place, config.build());
    redis.ping();
  }

  @Override
  public void cleanup() {
    redis.close();
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    return carryOut(() -> one(key, fields, result) ? Status.OK : Status.NOT_FOUND);
  }

  @Override
  public Status scan(String table, String startKey, int count, Set<String> fields,
                     Vector<HashMap<String, ByteIterator>> result) {
    return carryOut(() -> {
      for (String key : redis.zrangeByScore(INDEX, place(startKey), Double.POSITIVE_INFINITY, 0, count)) {
        HashMap<String, ByteIterator> values = new HashMap<>();
        one(key, fields, values);
        result.add(values);
      }
      return result.isEmpty() ? Status.NOT_FOUND : Status.OK;
    });
  }

  /** A hash of one field more than was there is a record that was not. */
  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    return carryOut(() -> redis.hset(key, text(values)) == 0 ? Status.OK : Status.NOT_FOUND);
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    return carryOut(() -> {
      redis.hset(key, text(values));
      redis.zadd(INDEX, place(key), key);
      return Status.OK;
    });
  }

  @Override
  public Status delete(String table, String key) {
    return carryOut(() -> redis.del(key) + redis.zrem(INDEX, key) == 2 ? Status.OK : Status.NOT_FOUND);
  }

  private boolean one(String key, Set<String> fields, Map<String, ByteIterator> result) {
    if (fields == null) {
      redis.hgetAll(key).forEach((field, value) -> result.put(field, new StringByteIterator(value)));
      return !result.isEmpty();
    }
    List<String> names = new ArrayList<>(fields);
    List<String> found = redis.hmget(key, names.toArray(String[]::new));
    for (int n = 0; n < names.size(); n++) {
      if (found.get(n) == null) {
        return false;
      }
      result.put(names.get(n), new StringByteIterator(found.get(n)));
    }
    return true;
  }

  private static double place(String key) {
    return key.hashCode();
  }

  private static Map<String, String> text(Map<String, ByteIterator> values) {
    Map<String, String> texts = new HashMap<>();
    values.forEach((field, value) -> texts.put(field, value.toString()));
    return texts;
  }

  private static Status carryOut(Supplier<Status> work) {
    try {
      return work.get();
    } catch (JedisException e) {
      Complaints.say(e);
      return Status.ERROR;
    }
  }
}
