import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;

public class Call {
    public static void main(String[] args) throws Exception {
        var request = HttpRequest.newBuilder(URI.create("{{url}}"))
            .header("Authorization", "Bearer " + System.getenv().getOrDefault("CATALOG_API_KEY", ""))
            .build();
        var client = HttpClient.newHttpClient();
        var response = client.send(request, BodyHandlers.ofString());
        if (response.statusCode() != 200) {
            System.err.println(response.statusCode() + " " + response.body());
            System.exit(1);
        }
        System.out.println(response.body());
    }
}
